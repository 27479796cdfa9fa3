//! Refused calls leave the caller's memory unchanged.

#![allow(unsafe_code, reason = "calls through the border to C")]

use ctcp_coding_capi::{
    CtcpRecoded, SYMBOL_SIZE_MAX, WINDOW_MAX, ctcp_decoder_new, ctcp_encoder_combine, ctcp_encoder_free,
    ctcp_encoder_new, ctcp_encoder_push, ctcp_recoder_combine, ctcp_recoder_free,
    ctcp_recoder_handle_combination, ctcp_recoder_new, status,
};

#[test]
fn excessive_sizes_return_null() {
    assert!(ctcp_encoder_new(SYMBOL_SIZE_MAX + 1, 4).is_null());
    assert!(ctcp_encoder_new(4, usize::MAX).is_null());
    assert!(ctcp_decoder_new(usize::MAX, 4).is_null());
    assert!(ctcp_decoder_new(4, WINDOW_MAX + 1).is_null());
    assert!(ctcp_recoder_new(usize::MAX, 4).is_null());
}

#[test]
fn an_encoder_given_null_for_the_length_writes_no_payload() {
    let encoder = ctcp_encoder_new(8, 4);
    let (mut index, mut payload) = (0, [0x55; 8]);
    // SAFETY: live objects, and buffers of the stated sizes.
    unsafe {
        assert_eq!(ctcp_encoder_push(encoder, [1, 2, 3].as_ptr(), 3, &raw mut index), status::OK);
        let result = ctcp_encoder_combine(
            encoder,
            0,
            1,
            [1].as_ptr(),
            payload.as_mut_ptr(),
            payload.len(),
            core::ptr::null_mut(),
        );
        assert_eq!(result, status::NULL);
        ctcp_encoder_free(encoder);
    }
    assert_eq!(payload, [0x55; 8]);
}

#[test]
fn a_recoder_with_too_little_room_writes_nothing() {
    let recoder = ctcp_recoder_new(8, 4);
    let (mut coefficients, mut payload) = ([0x55; 4], [0x55; 8]);
    // SAFETY: live objects, and buffers of the stated sizes.
    unsafe {
        let taken = ctcp_recoder_handle_combination(recoder, 7, 2, [1, 2].as_ptr(), [9, 9, 9].as_ptr(), 3);
        assert_eq!(taken, status::INNOVATIVE);
        for (coefficient_capacity, payload_capacity) in [(1, 8), (4, 2)] {
            let mut recoded = CtcpRecoded {
                first: 99,
                length: 99,
                coefficients: coefficients.as_mut_ptr(),
                coefficient_capacity,
                payload: payload.as_mut_ptr(),
                payload_capacity,
                payload_length: 99,
            };
            let result = ctcp_recoder_combine(recoder, [1].as_ptr(), 1, &raw mut recoded);
            assert_eq!(result, status::BUFFER);
            assert_eq!((recoded.first, recoded.length, recoded.payload_length), (99, 99, 99));
        }
        ctcp_recoder_free(recoder);
    }
    assert_eq!((coefficients, payload), ([0x55; 4], [0x55; 8]));
}
