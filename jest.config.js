/** Packages are read from src through the `source` export condition, so nothing is built before a test. */
export default {
  testEnvironment: "node",
  testEnvironmentOptions: { customExportConditions: ["source", "node", "node-addons"] },
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "\\.ts$": [
      "@swc/jest",
      {
        jsc: { target: "es2023", parser: { syntax: "typescript" } },
        module: { type: "es6" },
        sourceMaps: "inline",
      },
    ],
  },
  globalSetup: "<rootDir>/libs/testkit/src/jest/global-setup.ts",
  globalTeardown: "<rootDir>/libs/testkit/src/jest/global-teardown.ts",
  testMatch: [
    "<rootDir>/{libs,services}/*/src/**/*.test.ts",
    "<rootDir>/bench/src/**/*.test.ts",
    "<rootDir>/tests/**/*.test.ts",
  ],
  modulePathIgnorePatterns: ["/dist/"],
  maxWorkers: 2,
  // Of `it.concurrent`, in one file.
  maxConcurrency: 2,
  testTimeout: 120_000,
};
