import { runProgram } from "./run-program.ts";
import { MACHINE_VERBS } from "./server-verb.ts";

// The program of the package `rollcall-agent`: the command line, and no server but the agent and its keeper.
void runProgram(process, MACHINE_VERBS);
