import { setTimeout as pause } from "node:timers/promises";
import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Command } from "commander";
import { displayAddress, isLoopback } from "../client/addresses.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes, type Verb } from "../command.ts";
import { openPage } from "../console/open-page.ts";
import { Failure } from "../failure.ts";
import { reasonIn } from "../hints.ts";
import type { Shell } from "../shell.ts";

/** Define `console`. */
export function defineConsole(command: Command, shell: Shell): void {
  command
    .option("--no-open", "Print the address to sign in at, and open nothing")
    .option("--sign-out", "End every session of the console that acts for you, and open nothing")
    .action(action(shell, openConsole));
  addNotes(
    command,
    "The browser signs in by a code that is valid once, for a minute, and asks before it does. The session that it " +
      "makes acts for your token, and ends with it; `rollcall access list` shows it, `rollcall access revoke` ends it.",
    "Where the console is on an address of its own, name it with --server, and the token with --token-file.",
    "With --no-open the address goes to standard output. The first browser that opens it signs in as you.",
    "If another browser signed in by your code, --sign-out ends its session, with all others that act for you.",
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
    shell.out.write(`${ended} ${ended === 1 ? "session" : "sessions"} ended\n`);
    return;
  }
  const base = control.addresses.admin;
  if (new URL(base).protocol === "http:" && !isLoopback(base)) {
    const { port } = new URL(base);
    throw new Failure(
      `the console takes no sign-in over clear text, except on the machine itself: ${displayAddress(base)} is not ` +
        `this machine's\nhint: serve it over TLS, or \`ssh -L ${port}:127.0.0.1:${port}\` and --server ` +
        `127.0.0.1:${port}`,
    );
  }
  const { code } = await control.attempt("admin", "get a code to sign in with", () => client.createSignInCode({}));
  const url = `${base}/sign-in#code=${code}`;
  if (options.open === false) {
    shell.out.write(`${url}\n`);
    shell.err.write("Valid once, for a minute. The first browser that opens it signs in as you.\n");
    return;
  }
  const page = await openPage(url, shell);
  try {
    shell.err.write(`Opening ${displayAddress(base)} in your browser. Waiting until it has signed in...\n`);
    await untilUsed(shell, control, code);
  } finally {
    await page.close();
  }
  shell.out.write("Signed in\n");
  shell.err.write("If it was not your browser: `rollcall console --sign-out` ends all sessions that act for you.\n");
};

const ASK_EVERY_MS = 500;

/** Longer than any code lives. */
const MOST_QUESTIONS = 240;

/** Wait until the code was used; the control plane refuses it when its time has passed. */
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
    throw new Failure(`cannot tell whether the browser signed in: ${await control.explain("admin", refusal.error)}`);
  }
  throw new Failure("the browser did not sign in within a minute\nhint: run `rollcall console` again");
}
