import { runProgram } from "./run-program.ts";
import { AGENT_VERB } from "./server-verb.ts";

// The program of the package `rollcall-agent`: the command line, and no server but the agent.
await runProgram(process, [AGENT_VERB]);
