import { runProgram } from "./run-program.ts";
import { MACHINE_VERBS } from "./server-verb.ts";

// The program of the package `rollcall-agent`: the command line, the agent and its keeper, but no other
// server.
void runProgram(process, MACHINE_VERBS);
