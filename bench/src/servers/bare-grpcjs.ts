import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BenchContext } from "../bench-context.ts";
import { freePort } from "./free-port.ts";
import { type Candidate, ServerProcess } from "./server-process.ts";

/**
 * Start a server with the minimum that any grpc-js server must do, on a free port. The
 * server ends with the benchmark.
 */
export async function startBareServer(context: BenchContext): Promise<Candidate> {
  const port = await freePort();
  const program = fileURLToPath(new URL("./bare-grpcjs-main.js", import.meta.url));
  const logFile = join(context.directory, `bare-${port}.log`);
  const server = await ServerProcess.start({ program, args: [String(port)], port, logFile });
  context.atEnd(() => server.stop());
  return { port, server };
}
