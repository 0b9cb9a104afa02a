/** Every bound of the expression language, with its reason. Units: UTF-16 code units of text. */

/** Longest source with expressions: an expression is a formula, not a document. */
export const SOURCE_MAX = 4096;

/** Filters in one expression: real ones have one to four, and each may copy its input. */
export const FILTERS_MAX = 20;

/** Expressions in one mask: bounds what creating a token costs; a card mask has three. */
export const MASK_EXPRESSIONS_MAX = 1000;

/** Levels of a mask. The JSON layer stops at 64; this only keeps our own recursion bounded. */
export const MASK_DEPTH_MAX = 100;

/** Output of a mask, an id or an index value: all its expressions together. */
export const OUTPUT_MAX = 64 * 1024;

/**
 * Output of a fingerprint expression. Token data is at most 1 MiB of JSON text, and printing it
 * again may lengthen numbers (`1e20` becomes 21 digits).
 */
export const FINGERPRINT_OUTPUT_MAX = 5 * 1024 * 1024;

/**
 * Expressions in the texts of one detokenized body: 100 tokens with fifty uses of each, and a body
 * full of braces is refused before it costs more than its own scan.
 */
export const DETOKENIZATION_EXPRESSIONS_MAX = 5000;

/**
 * Filters of the expressions of one body, as they are written: compiling takes some 0.25 µs per character, and nobody
 * else is served meanwhile. Fifty characters for each of the expressions.
 */
export const DETOKENIZATION_FILTERS_MAX = 250_000;

/** JSON text that one request may have injected, all expressions together (design section 7). */
export const DETOKENIZATION_OUTPUT_MAX = 5 * 1024 * 1024;

/**
 * Work of one evaluation: characters and list items that filters read or make, JSONPath steps. One
 * unit costs 1 to 20 ns, so the smallest allowance ends after about 10 ms at worst.
 */
export const WORK_MIN = 1024 * 1024;

/** An allowance for longer outputs gets this many units of work per unit of output. */
export const WORK_PER_OUTPUT = 4;

/**
 * Compiled templates kept per process, and the source text they may hold together. What a template compiles to takes
 * up to a hundred times its source; so one that is longer than any formula counts eightfold.
 */
export const CACHE_ENTRIES_MAX = 2000;
export const CACHE_SOURCE_MAX = 1024 * 1024;
export const CACHE_FORMULA_MAX = 128;
export const CACHE_LONG_FACTOR = 8;
