/** Test files run in Node itself, from the sources of all packages: nothing is built before a test. */
export default {
  runtime: "<rootDir>/libs/testkit/src/jest/native-runtime.cjs",
  testEnvironment: "<rootDir>/libs/testkit/src/jest/native-environment.cjs",
  transform: {},
  globalSetup: "<rootDir>/libs/testkit/src/jest/global-setup.js",
  globalTeardown: "<rootDir>/libs/testkit/src/jest/global-teardown.js",
  testMatch: [
    "<rootDir>/{libs,services}/*/src/**/*.test.ts",
    "<rootDir>/services/console/web/src/**/*.test.ts",
    "<rootDir>/bench/src/**/*.test.ts",
    "<rootDir>/tests/**/*.test.ts",
  ],
  testSequencer: "<rootDir>/tests/support/longest-first.cjs",
  modulePathIgnorePatterns: ["/dist/"],
  maxWorkers: 2,
  // Of `it.concurrent`, in one file.
  maxConcurrency: 2,
  // Each wait has a bound of its own, and a test has several; a busy machine is seven times slower than a quiet one.
  testTimeout: 300_000,
};
