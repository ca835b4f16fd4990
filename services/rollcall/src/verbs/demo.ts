import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { columnsOf, Failure, type Shell, UsageError, wrap } from "@rollcall/cli";
import { unknownOption } from "../config/read-arguments.ts";
import { Demo, type DemoPlace, dataDirectoryOf } from "../demo/demo.ts";
import { DEMO_ACTIONS, type DemoAction, listenForActions, NoDemo, requestAction } from "../demo/demo-control.ts";
import { DEMO_JOBS, DEMO_NODES } from "../demo/demo-nodes.ts";
import { DEMO_AUDIENCE, DEMO_CLIENT_ID, DEMO_PEOPLE, DevelopmentIssuer } from "../demo/development-issuer.ts";
import { programName } from "../up/local-agent-options.ts";

/** The flags of `demo`, for completion. */
export const DEMO_FLAGS: readonly string[] = ["--dir", "--port"];

const DEFAULT_FOLDER = "rollcall-demo";
const DEFAULT_PORT = 7700;
const ISSUER_PORT = 7730;
/** The highest port that the demo uses, as an offset from the first. */
const HIGHEST_OFFSET = 90;
const MOST_PORT = 65_535;

const HELP = [
  "Usage: rollcall demo [--dir DIR] [--port PORT]",
  "       rollcall demo crash|freeze|start NODE [--dir DIR]",
  "       rollcall demo issuer [--port PORT]",
  "",
  "Try Rollcall on this machine: start a control plane, five agents with labels and pretended GPUs, sample jobs and " +
    "a login issuer, all in one directory, and stop them together with Ctrl-C. Each demo starts from scratch.",
  "",
  "Options:",
  `  --dir DIR      The directory of the demo (default: ${DEFAULT_FOLDER})`,
  `  --port PORT    The first of the ports; the API listens there (default: ${DEFAULT_PORT})`,
  "  -h, --help     Print this help",
  "",
  "Commands, in another terminal:",
  "  crash NODE     Kill the agent of a machine",
  "  freeze NODE    Pause the agent of a machine: it stays connected, but is silent",
  "  start NODE     Start a crashed or frozen agent again",
  `  issuer         Run only the issuer: anyone can log in as anyone (port ${ISSUER_PORT})`,
  "",
];

interface DemoWords {
  readonly words: readonly string[];
  readonly folder: string;
  /** The port that the user requested; null if none was given. */
  readonly port: number | null;
}

/** `rollcall demo`. Returns the exit code: 0 when it was stopped, 1 for a failure. */
export async function runDemo(given: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  if (given.includes("--help") || given.includes("-h")) {
    shell.out.write(HELP.map((line) => wrap(line, columnsOf(shell) || 80)).join("\n"));
    return 0;
  }
  const { words, folder, port } = parseWords(given, shell);
  const [verb, name, ...more] = words;
  if (verb === undefined) return runAll({ folder, port: port ?? DEFAULT_PORT }, shell, process);
  if (verb === "issuer" && name === undefined) return runIssuer(port ?? ISSUER_PORT, shell, process);
  const action = DEMO_ACTIONS.find((it) => it === verb);
  if (action === undefined || name === undefined || more.length > 0) throw new UsageError(HELP.slice(0, 3).join("\n"));
  return runAction(folder, action, name, shell);
}

/** The directory of the demo whose control plane ROLLCALL_DATA_DIR names, as the demo's first lines tell to set it. */
function folderOfRunning({ ROLLCALL_DATA_DIR: data = "" }: Shell["env"]): string {
  const folder = dirname(data);
  return data !== "" && dataDirectoryOf(folder) === data ? folder : DEFAULT_FOLDER;
}

function parseWords(given: readonly string[], { cwd, env }: Shell): DemoWords {
  const options = { dir: { type: "string" }, port: { type: "string" } } as const;
  const { tokens } = parseArgs({ args: [...given], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind === "option" && !(token.name in options)) throw unknownOption(token.name, Object.keys(options));
  }
  const parsed = parsedStrictly(() => parseArgs({ args: [...given], options, allowPositionals: true }));
  // A new demo never takes a directory that the environment names, because a demo deletes what an earlier one wrote.
  const { port, dir = parsed.positionals.length > 0 ? folderOfRunning(env) : DEFAULT_FOLDER } = parsed.values;
  const number = port === undefined ? null : Number(port);
  if (number !== null && !(Number.isInteger(number) && number > 0 && number + HIGHEST_OFFSET <= MOST_PORT)) {
    throw new UsageError(`cannot use '${port}' as port, should be a number from 1 to ${MOST_PORT - HIGHEST_OFFSET}`);
  }
  return { words: parsed.positionals, folder: resolve(cwd, dir), port: number };
}

/** Convert an error of parseArgs() to a usage error. */
function parsedStrictly<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function runAction(folder: string, action: DemoAction, name: string, shell: Shell): Promise<number> {
  const text = `Ok: ${await requestAction(folder, action, name)}`;
  const columns = columnsOf(shell);
  shell.out.write(`${columns === 0 ? text : wrap(text, columns)}\n`);
  return 0;
}

async function runAll(place: DemoPlace, shell: Shell, process: NodeJS.Process): Promise<number> {
  const { folder } = place;
  await refuseRunning(folder);
  await claimFolder(folder);
  // Only what an earlier demo wrote.
  for (const part of ["control-plane", ...DEMO_NODES.map(({ name }) => name)]) {
    await rm(join(folder, part), { recursive: true, force: true });
  }
  const ending = endingOf(process);
  const demo = new Demo(process, shell, place);
  try {
    await demo.start(ending.signal);
    const control = await listenForActions(folder, demo);
    shell.out.write(welcome(place, demo, shell, process));
    await ending.over;
    control.close();
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  } finally {
    await demo.stop();
  }
  return 0;
}

/** Marks the folder of a demo, whose contents the next demo deletes. */
const MARK = ".rollcall-demo";

/** Mark an empty or new folder as one of a demo. Throws Failure for a folder with other contents. */
async function claimFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const names = await readdir(folder);
  if (names.length > 0 && !names.includes(MARK)) {
    throw new Failure(`${folder} contains files that are not of a demo; use an empty or new directory with --dir`);
  }
  await writeFile(join(folder, MARK), "The next `rollcall demo` deletes what the demo wrote here.\n");
}

/** Throws Failure when a demo already runs in a folder. */
async function refuseRunning(folder: string): Promise<void> {
  const isRunning = await requestAction(folder, "start", "-").then(
    () => true,
    (error: unknown) => !(error instanceof NoDemo),
  );
  if (isRunning) throw new Failure(`a demo is already running in ${folder}; use another directory with --dir`);
}

function welcome({ folder, port }: DemoPlace, demo: Demo, { cwd }: Shell, process: NodeJS.Process): string {
  const program = programName(process, cwd);
  const pending = DEMO_NODES.filter(({ isPending }) => isPending === true).map(({ name }) => name);
  return `
The demo runs at 127.0.0.1:${port}. In another terminal:

  export ROLLCALL_DATA_DIR=${dataDirectoryOf(folder)}
  ${program} node list
  ${program} node approve ${pending.join(" ")}
  ${program} job list
  ${program} job why ${DEMO_JOBS.at(-1)?.name}
  ${program} demo crash ${DEMO_NODES[0]?.name}
  ${program} node watch
  ${program} console

People can log in at ${demo.issuerUrl}:
${DEMO_PEOPLE.map(({ email, groups }) => `  ${email.padEnd(20)} ${groups.join(", ")}`).join("\n")}

  ${program} login --oidc --context demo --server 127.0.0.1:${port}

Ctrl-C stops everything.
`;
}

async function runIssuer(port: number, { out }: Shell, process: NodeJS.Process): Promise<number> {
  const issuer = await DevelopmentIssuer.listen(port);
  const people = DEMO_PEOPLE.map(({ email, groups }) => `  ${email.padEnd(20)} ${groups.join(", ")}\n`).join("");
  out.write(`Issuer:    ${issuer.url}
Audience:  ${DEMO_AUDIENCE}
Client id: ${DEMO_CLIENT_ID}
Anyone who reaches it can log in as one of these people, with their groups:
${people}Ctrl-C stops it.
`);
  await endingOf(process).over;
  await issuer.close();
  return 0;
}

/** Returns a signal that aborts, and a promise that resolves, when the process is asked to exit. */
function endingOf(process: NodeJS.Process): { readonly signal: AbortSignal; readonly over: Promise<void> } {
  const ending = new AbortController();
  const over = new Promise<void>((done) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(name, () => {
        ending.abort(new Error(`ended by ${name}`));
        done();
      });
    }
  });
  return { signal: ending.signal, over };
}
