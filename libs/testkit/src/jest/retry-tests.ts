import { jest } from "@jest/globals";

/**
 * How often a test that failed is run again before it counts as failed. Unset, as in `make test`: never. CI sets it to 1 and
 * names what failed at first, so that a race is seen and mended without holding up everything else.
 */
const retries = Number(process.env.ROLLCALL_TEST_RETRIES ?? "0");

if (retries > 0) jest.retryTimes(retries, { logErrorsBeforeRetry: true });
