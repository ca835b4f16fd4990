// Prints the test files that failed, in one line. Exits with 1 if there are none, or too many to be a coincidence.
// Usage: node failed-files.js RESULTS MOST   the file that jest wrote, and the largest number of files to print.
import { readResults } from "./results.js";

const [file = "", most = "0"] = process.argv.slice(2);
const { testResults = [] } = readResults(file);
const failed = testResults.filter(({ status }) => status === "failed").map(({ name }) => name);

if (failed.length > 0 && failed.length <= Number(most)) {
  process.stdout.write(`${failed.join(" ")}\n`);
} else {
  process.exitCode = 1;
}
