import base from "./jest.config.js";

/**
 * Runs tests that take longer than other tests can: they start whole programs as they are built and shipped. They wait
 * more than they work, so there are more workers than CI's machine has cores.
 */
export default {
  ...base,
  testMatch: ["<rootDir>/tests/acceptance/**/*.acceptance.ts"],
  maxWorkers: 3,
  testTimeout: 1_800_000,
};
