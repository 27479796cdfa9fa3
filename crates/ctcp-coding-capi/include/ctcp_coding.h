/*
 * ctcp-coding: random linear network coding over GF(2^8).
 *
 * Everything sent is a linear combination of consecutive source symbols. An encoder creates combinations, a decoder accepts any mix
 * of them, and a recoder at a relay creates new ones from those it received.
 *
 * An object belongs to the caller until it is passed to its _free function. Only one thread at a time may use it. Functions that
 * return int return one of the numbers below. A negative number is an error, and nothing was changed. Null for input bytes is
 * allowed if their count is 0.
 * Link with -lctcp_coding_capi; the archive also needs -lpthread -ldl -lm.
 */
#ifndef CTCP_CODING_H
#define CTCP_CODING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CTCP_OK = 0,              /* success; an arrival that carries nothing new; nothing to poll */
    CTCP_INNOVATIVE = 1,      /* an arrival raised the rank; a symbol was returned */
    CTCP_TOO_OLD = 2,         /* an arrival refers to symbols that were released */
    CTCP_NO_ROOM = 3,         /* an arrival was innovative but dropped: too many are held */
    CTCP_NULL = -1,           /* a required pointer is null */
    CTCP_TOO_LONG = -2,       /* contents or payload exceed the size of a symbol */
    CTCP_OUTSIDE_WINDOW = -3, /* a range is empty, too long, or outside the window */
    CTCP_COUNT = -4,          /* the number of coefficients or weights is wrong */
    CTCP_WINDOW_FULL = -5,    /* the window is full: release symbols first */
    CTCP_BUFFER = -6,         /* a buffer is too short for the result */
    CTCP_NOTHING = -7         /* there is nothing to combine */
};

/* The maximum number of symbols in a combination. */
#define CTCP_SPAN_MAX 4095

/* The maximum size of a symbol in bytes, and of a window in symbols. Beyond them, the _new functions return null. */
#define CTCP_SYMBOL_SIZE_MAX 65535
#define CTCP_WINDOW_MAX 1048576

/* The density at which no coefficient is zero. */
#define CTCP_DENSITY_MAX 15

/* Generates the coefficients of a key as in RFC 8681 and 8682. Sender and receiver generate the same ones. */
int ctcp_coefficients(uint16_t key, uint8_t density, uint8_t *out, uint16_t count);

/* The sender's window. The first symbol has the index 0. A combination is at most symbol_size_max bytes long. */
typedef struct ctcp_encoder ctcp_encoder;
ctcp_encoder *ctcp_encoder_new(size_t symbol_size_max, size_t window);
void ctcp_encoder_free(ctcp_encoder *encoder);
int ctcp_encoder_push(ctcp_encoder *encoder, const uint8_t *contents, size_t length, uint64_t *index);
int ctcp_encoder_combine(ctcp_encoder *encoder, uint64_t first, uint16_t length, const uint8_t *coefficients,
                         uint8_t *payload, size_t capacity, size_t *payload_length);
void ctcp_encoder_release_before(ctcp_encoder *encoder, uint64_t index);

/* The receiver. After each arrival, poll until the result is 0. Contents receive symbol_size_max bytes, zero padded. */
typedef struct ctcp_decoder ctcp_decoder;
ctcp_decoder *ctcp_decoder_new(size_t symbol_size_max, size_t window);
void ctcp_decoder_free(ctcp_decoder *decoder);
int ctcp_decoder_handle_source(ctcp_decoder *decoder, uint64_t index, const uint8_t *contents, size_t length);
int ctcp_decoder_handle_combination(ctcp_decoder *decoder, uint64_t first, uint16_t length,
                                    const uint8_t *coefficients, const uint8_t *payload, size_t payload_length);
int ctcp_decoder_poll(ctcp_decoder *decoder, uint64_t *index, uint8_t *contents, size_t capacity);
void ctcp_decoder_release_before(ctcp_decoder *decoder, uint64_t index);
uint64_t ctcp_decoder_oldest_unseen(ctcp_decoder *decoder);
uint64_t ctcp_decoder_oldest_undecoded(ctcp_decoder *decoder);

/* A combination made by a relay. The buffers belong to the caller; the other fields are output. */
typedef struct ctcp_recoded {
    uint64_t first;
    uint16_t length;
    uint8_t *coefficients;
    size_t coefficient_capacity;
    uint8_t *payload;
    size_t payload_capacity;
    size_t payload_length;
} ctcp_recoded;

/* A relay. A source symbol is a combination of length 1 with the coefficient 1. Weights are random bytes, ctcp_recoder_rank of them. */
typedef struct ctcp_recoder ctcp_recoder;
ctcp_recoder *ctcp_recoder_new(size_t symbol_size_max, uint16_t window);
void ctcp_recoder_free(ctcp_recoder *recoder);
int ctcp_recoder_handle_combination(ctcp_recoder *recoder, uint64_t first, uint16_t length,
                                    const uint8_t *coefficients, const uint8_t *payload, size_t payload_length);
void ctcp_recoder_release_before(ctcp_recoder *recoder, uint64_t index);
size_t ctcp_recoder_rank(ctcp_recoder *recoder);
int ctcp_recoder_combine(ctcp_recoder *recoder, const uint8_t *weights, size_t count, ctcp_recoded *recoded);

#ifdef __cplusplus
}
#endif

#endif
