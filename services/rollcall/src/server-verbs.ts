import { Failure, type ForeignVerb, type Shell, UsageError } from "@rollcall/cli";
import { SERVICE_NAMES } from "./control-plane/process-plan.ts";
import { isOfTheSystem } from "./system-error.ts";

const KEEP_ALIVE_MS = 60_000;
const FAILED = 1;
const MISUSED = 2;

type Run = (words: readonly string[], shell: Shell, process: NodeJS.Process) => Promise<number>;

/** `up`, `serve`, `agent` and `keeper`. Each is loaded only when it is called. */
export function createServerVerbs(
  shell: Shell,
  process: NodeJS.Process,
  releaseSignals: () => void,
): readonly ForeignVerb[] {
  const verb = (
    name: string,
    usage: string,
    description: string,
    load: () => Promise<{ readonly run: Run; readonly flags: readonly string[] }>,
  ): ForeignVerb => ({
    name,
    usage,
    description,
    run: async (words) => {
      releaseSignals();
      const code = await reported(shell, async () => (await load()).run(words, shell, process));
      // What a server leaves behind, a pool that is closing or a watch of files, must not keep its process.
      return process.exit(code);
    },
    complete: async (words) => {
      if (name === "serve" && words.length === 1) return SERVICE_NAMES;
      return words.at(-1)?.startsWith("-") ? (await load()).flags : [];
    },
  });
  return [
    verb("up", "", "Run everything on this machine, with a Postgres of its own", async () => {
      const { runUp, UP_FLAGS } = await import("./verbs/up.ts");
      return { run: runUp, flags: UP_FLAGS };
    }),
    verb("serve", "<service>", "Run one service: registry, health, admin or scheduler", async () => {
      const { runServe, SERVE_FLAGS } = await import("./verbs/serve.ts");
      return { run: runServe, flags: SERVE_FLAGS };
    }),
    verb("agent", "", "Run the agent of this machine", async () => {
      const { AGENT_FLAGS, runAgent } = await import("./verbs/agent.ts");
      return { run: runAgent, flags: AGENT_FLAGS };
    }),
    verb("keeper", "", "Keep the executions of this machine for its agent", async () => {
      const { KEEPER_FLAGS, runKeeper } = await import("./verbs/keeper.ts");
      return { run: runKeeper, flags: KEEPER_FLAGS };
    }),
  ];
}

async function reported(shell: Shell, run: () => Promise<number>): Promise<number> {
  // What a verb waits for while it ends may be nothing that keeps Node running, such as a child that was let go.
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  try {
    return await run();
  } catch (error) {
    const known = error instanceof UsageError || error instanceof Failure || isOfTheSystem(error);
    const text = known ? error.message : error instanceof Error ? error.stack : String(error);
    shell.err.write(`${text}\n`);
    return error instanceof UsageError ? MISUSED : FAILED;
  } finally {
    clearInterval(alive);
  }
}
