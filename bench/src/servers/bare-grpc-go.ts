import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { BenchContext } from "../bench-context.ts";
import { freePort } from "./free-port.ts";
import { type Candidate, ServerProcess } from "./server-process.ts";

const WORKSPACE = fileURLToPath(new URL("../../..", import.meta.url));
const STUBS = join(WORKSPACE, "sdk/go/gen/rollcall/health/v1");
/** The time limit for the build. The first download and build of grpc-go takes a minute or two. */
const BUILD_LIMIT_MS = 600_000;

const execute = promisify(execFile);

/**
 * Start a server with the minimum that any grpc-go server must do, on a free port. Returns null if Go is not
 * installed. The server ends with the benchmark.
 */
export async function startBareGoServer(context: BenchContext): Promise<Candidate | null> {
  if (!(await hasGo())) {
    context.progress("Go is not installed: the comparison with grpc-go is skipped");
    return null;
  }
  const program = join(context.directory, "bare-grpc-go");
  await build(program);
  const port = await freePort();
  const logFile = join(context.directory, "bare-go.log");
  const server = await ServerProcess.start({ program, isBinary: true, args: [String(port)], port, logFile });
  context.atEnd(() => server.stop());
  return { port, server };
}

/** Whether Go is installed, which builds the programs in Go. */
export function hasGo(): Promise<boolean> {
  return execute("go", ["version"]).then(
    () => true,
    () => false,
  );
}

/** Build the server with the stubs of the SDK for Go. Generates them first if they are missing. */
async function build(program: string): Promise<void> {
  const options = { cwd: WORKSPACE, timeout: BUILD_LIMIT_MS };
  if (!existsSync(STUBS)) await execute(process.execPath, ["scripts/sdk/main.mjs", "go"], options);
  await execute("go", ["build", "-o", program, "."], { ...options, cwd: join(WORKSPACE, "bench/grpc-go") });
}
