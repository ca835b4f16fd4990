// Replaces @jest/globals in the domain's tests.
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } = globalThis.testGlobals;
