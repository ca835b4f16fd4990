import { setTimeout as pause } from "node:timers/promises";
import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Command } from "commander";
import { displayAddress, isLoopback } from "../client/addresses.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes } from "../command.ts";
import { openPage } from "../console/open-page.ts";
import { Failure } from "../failure.ts";
import { reasonIn } from "../hints.ts";
import type { Verb } from "../invocation.ts";
import { counted } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** Define `console`. */
export function defineConsole(command: Command, shell: Shell): void {
  command
    .option("--no-open", "Print the sign-in address instead of opening a browser")
    .option("--sign-out", "End all console sessions that act for you")
    .action(action(shell, openConsole));
  addNotes(
    command,
    "The browser asks you to confirm, and signs in with a code that can be used once, within a minute. The session " +
      "acts for your token, and ends with it; `rollcall access list` shows it, `rollcall access revoke` ends it.",
    "If the console has a separate address, pass it with --server, and the token with --token-file.",
    "With --no-open the address goes to standard output. The first browser that opens it signs in as you.",
    "If another browser signed in with your code, --sign-out ends its session and all others that act for you.",
  );
}

interface ConsoleOptions {
  /** False with --no-open. */
  readonly open?: boolean;
  readonly signOut?: boolean;
}

const openConsole: Verb<ConsoleOptions> = async ({ shell, options }) => {
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", ConsoleService);
  if (options.signOut === true) {
    const { ended } = await control.attempt("admin", "end your sessions", () => client.signOut({ all: true }));
    shell.out.write(`${counted(ended, "session")} ended\n`);
    return;
  }
  const base = control.addresses.admin;
  if (new URL(base).protocol === "http:" && !isLoopback(base)) {
    const { port } = new URL(base);
    throw new Failure(
      `the console refuses sign-ins over clear text, except on its own machine: ${displayAddress(base)} is not ` +
        `on this machine\nhint: serve it over TLS, or use \`ssh -L ${port}:127.0.0.1:${port}\` and --server ` +
        `127.0.0.1:${port}`,
    );
  }
  const { code } = await control.attempt("admin", "get a sign-in code", () => client.createSignInCode({}));
  const url = `${base}/sign-in#code=${code}`;
  if (options.open === false) {
    shell.out.write(`${url}\n`);
    shell.err.write(
      "The address can be used once, within a minute. The first browser that opens it signs in as you.\n",
    );
    return;
  }
  const page = await openPage(url, shell);
  try {
    shell.err.write(`Opening ${displayAddress(base)} in your browser. Waiting for it to sign in...\n`);
    await untilUsed(shell, control, code);
  } finally {
    await page.close();
  }
  shell.out.write("Signed in\n");
  shell.err.write("If it was not your browser: `rollcall console --sign-out` ends all sessions that act for you.\n");
};

const ASK_EVERY_MS = 500;

/**
 * Maximum number of requests to the control plane. At one request per ASK_EVERY_MS, they take longer than any code is
 * valid.
 */
const MOST_QUESTIONS = 240;

/** Wait until the code is used. The control plane refuses an expired code. */
async function untilUsed(shell: Shell, control: ControlPlane, code: string): Promise<void> {
  const client = control.client("admin", ConsoleService);
  for (let asked = 0; asked < MOST_QUESTIONS; asked += 1) {
    await pause(ASK_EVERY_MS, undefined, { signal: shell.interrupted });
    const refusal = await client.getSignInCode({ code }).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    if (refusal === null) continue;
    const reason = reasonIn(refusal.error);
    if (reason === ErrorReason.SIGN_IN_CODE_USED) return;
    if (reason === ErrorReason.SIGN_IN_CODE_INVALID) break;
    throw new Failure(
      `cannot determine whether the browser signed in: ${await control.explain("admin", refusal.error)}`,
    );
  }
  throw new Failure("the browser did not sign in within a minute\nhint: run `rollcall console` again");
}
