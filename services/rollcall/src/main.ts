import { runProgram } from "./run-program.ts";
import { SERVER_VERBS } from "./server-verbs.ts";

await runProgram(process, SERVER_VERBS);
