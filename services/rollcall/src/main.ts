import { runProgram } from "./run-program.ts";
import { SERVER_VERBS } from "./server-verbs.ts";

void runProgram(process, SERVER_VERBS);
