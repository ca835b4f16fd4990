// What the domain's tests import from @jest/globals.
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } = globalThis.testGlobals;
