/*
 * A block of 32 symbols, of which every fifth is lost. Combinations made by a relay replace the lost ones.
 *
 *   cargo build --release -p ctcp-coding-capi
 *   cc -Iinclude examples/encode_and_decode.c ../../target/release/libctcp_coding_capi.a -lpthread -ldl -lm
 */
#include "ctcp_coding.h"

#include <stdio.h>
#include <string.h>

#define SIZE 1200
#define BLOCK 32

int main(void)
{
    ctcp_encoder *encoder = ctcp_encoder_new(SIZE, BLOCK);
    ctcp_recoder *relay = ctcp_recoder_new(SIZE, BLOCK);
    ctcp_decoder *decoder = ctcp_decoder_new(SIZE, BLOCK);
    uint8_t symbol[SIZE], row[BLOCK], payload[SIZE], recoded_row[BLOCK], weights[BLOCK];
    size_t length;
    uint64_t index;
    uint16_t key;
    int decoded = 0, failed = 0, i;

    for (i = 0; i < BLOCK; i++) {
        memset(symbol, i, SIZE);
        if (ctcp_encoder_push(encoder, symbol, SIZE, &index) != CTCP_OK)
            failed = 1;
        if (i % 5 != 0)
            ctcp_decoder_handle_source(decoder, index, symbol, SIZE);
    }
    for (key = 0; ctcp_decoder_oldest_undecoded(decoder) < BLOCK && key < 100; key++) {
        ctcp_recoded recoded = {0, 0, recoded_row, BLOCK, payload, SIZE, 0};

        ctcp_coefficients(key, CTCP_DENSITY_MAX, row, BLOCK);
        if (ctcp_encoder_combine(encoder, 0, BLOCK, row, payload, SIZE, &length) != CTCP_OK)
            failed = 1;
        ctcp_recoder_handle_combination(relay, 0, BLOCK, row, payload, length);

        /* The weights should be random; this example uses the coefficients of another key. */
        ctcp_coefficients((uint16_t)(1000 + key), CTCP_DENSITY_MAX, weights, (uint16_t)ctcp_recoder_rank(relay));
        if (ctcp_recoder_combine(relay, weights, ctcp_recoder_rank(relay), &recoded) != CTCP_OK)
            failed = 1;
        ctcp_decoder_handle_combination(decoder, recoded.first, recoded.length, recoded.coefficients, recoded.payload,
                                        recoded.payload_length);
    }
    while (ctcp_decoder_poll(decoder, &index, symbol, SIZE) == CTCP_INNOVATIVE) {
        for (i = 0; i < SIZE; i++)
            if (symbol[i] != index)
                failed = 1;
        decoded++;
    }
    if (ctcp_decoder_oldest_unseen(decoder) != BLOCK || ctcp_encoder_push(NULL, symbol, SIZE, &index) != CTCP_NULL)
        failed = 1;
    ctcp_encoder_release_before(encoder, BLOCK);
    ctcp_recoder_release_before(relay, BLOCK);
    ctcp_decoder_release_before(decoder, BLOCK);
    printf("%d of %d symbols decoded with %d combinations of a relay\n", decoded, BLOCK, (int)key);
    ctcp_encoder_free(encoder);
    ctcp_recoder_free(relay);
    ctcp_decoder_free(decoder);
    return failed || decoded != BLOCK;
}
