/** Test files run in Node itself, from the sources of all packages: nothing is built before a test. */
export default {
  runtime: "<rootDir>/libs/testkit/src/jest/native-runtime.cjs",
  testEnvironment: "<rootDir>/libs/testkit/src/jest/native-environment.cjs",
  transform: {},
  globalSetup: "<rootDir>/libs/testkit/src/jest/global-setup.js",
  globalTeardown: "<rootDir>/libs/testkit/src/jest/global-teardown.js",
  testMatch: [
    "<rootDir>/{libs,services}/*/src/**/*.test.ts",
    "<rootDir>/services/console/web/src/**/*.test.{ts,tsx}",
    "<rootDir>/{simulation,bench}/src/**/*.test.ts",
    "<rootDir>/tests/**/*.test.ts",
  ],
  reporters: ["default", "<rootDir>/libs/testkit/src/jest/tally-reporter.cjs"],
  testSequencer: "<rootDir>/tests/support/longest-first.cjs",
  modulePathIgnorePatterns: ["/dist/"],
  // Tests wait more than they work, so there are more workers than CI's machine has cores.
  maxWorkers: 3,
  // The limit for tests of one file that use `it.concurrent`.
  maxConcurrency: 2,
  // A test has several waits, each with its own limit, and a busy machine is seven times slower than an idle one. Tests
  // of one package have a minute, unless their file sets another limit (libs/testkit/src/jest/test-globals.js).
  testTimeout: 300_000,
};
