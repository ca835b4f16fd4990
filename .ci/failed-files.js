// Prints the files of tests that failed, in one line; exits with 1 where there is none, or so many that it is no matter
// of chance. Usage: node failed-files.js RESULTS MOST   the file that jest wrote, and the most files that are few.
import { readResults } from "./results.js";

const [file = "", most = "0"] = process.argv.slice(2);
const { testResults = [] } = readResults(file);
const failed = testResults.filter(({ status }) => status === "failed").map(({ name }) => name);

if (failed.length > 0 && failed.length <= Number(most)) {
  process.stdout.write(`${failed.join(" ")}\n`);
} else {
  process.exitCode = 1;
}
