import base from "./jest.config.js";

/** What takes longer than a test may: whole programs as they are built and shipped, one after the other. */
export default {
  ...base,
  testMatch: ["<rootDir>/tests/acceptance/**/*.acceptance.ts"],
  maxWorkers: 1,
  testTimeout: 1_800_000,
};
