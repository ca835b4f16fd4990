import { create } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Brake,
  BrakeService,
  BrakeState,
  BrakeStateSchema,
  FreezeReactionsResponseSchema,
  GetBrakeResponseSchema,
  ReleaseReactionsResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { Command } from "commander";
import { alreadyDone } from "../client/already-done.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addListingOptions, addNotes, STRICT, type Verb } from "../command.ts";
import { Failure, UsageError } from "../failure.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writeAnswer, writePlain } from "../output/format.ts";
import { type ListingOptions, onePage, printListing } from "../output/listing.ts";
import type { Style } from "../output/style.ts";
import { type Column, optionalCell } from "../output/table.ts";
import { formatDuration, formatExactDuration } from "../output/units.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `brake`. */
export function defineBrake(brake: Command, shell: Shell): void {
  const status = brake
    .command("status")
    .description("Show the brake of the cluster and of every group")
    .option("--group <group>", "Only this one: cluster, or for example zone=a")
    .action(action(shell, brakeStatus));
  addNotes(
    addListingOptions(status),
    `  NORMAL   each reaction to a lost node is released a few seconds after it
  PARTIAL  more than 55 % of the group are silent or lost: a tenth of its size
           is released a minute
  FULL     all of the group is: nothing is released
  FROZEN   nothing is released, because an operator froze it`,
    "-o json|yaml prints a rollcall.admin.v1.GetBrakeResponse in proto JSON; -o csv prints RFC 4180.",
  );
  const freeze = brake.command("freeze").description("Hold back every reaction until it is released");
  addNotes(
    addCommandOptions(freeze),
    `Before work on a zone's network, for example:

  rollcall brake freeze --group zone=a -m "switch replaced, 10 minutes"`,
    "-o json|yaml prints a rollcall.admin.v1.FreezeReactionsResponse in proto JSON.",
  );
  freeze.action(action(shell, brakeFreeze));
  const release = brake.command("release").description("Lift a freeze, so that the brake decides again");
  addNotes(
    addCommandOptions(release)
      .option("--now", "Release everything that is pending now, whatever the brake says")
      .option("-y, --yes", "With --now: do not ask first"),
    "With --now and without --group, the reactions of all groups are released that are not frozen themselves. " +
      "Later losses are judged by the brake.",
    "-o json|yaml prints a rollcall.admin.v1.ReleaseReactionsResponse in proto JSON.",
  );
  release.action(action(shell, brakeRelease));
}

function addCommandOptions(command: Command): Command {
  return addChangeOptions(command.option("--group <group>", "For example zone=a (default: cluster)")).option(...STRICT);
}

interface BrakeStatusOptions extends ListingOptions {
  readonly group?: string;
}

const brakeStatus: Verb<BrakeStatusOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const control = reachControlPlane(shell, options);
  const page = await printListing(invocation, {
    columns: columnsAt(shell.wallMs()),
    nameOf: ({ group }: Brake) => group,
    pages: onePage(() => readBrakes(control, options.group)),
    itemsOf: ({ brakes }) => brakes,
    whole: (pages) => toPlain(GetBrakeResponseSchema, pages[0] ?? create(GetBrakeResponseSchema)),
  });
  const isForPrograms = options.output !== undefined && options.output !== "table" && options.output !== "wide";
  if (page?.decider === "" && !isForPrograms) {
    shell.err.write("no process of health decides at the moment: nothing is released\n");
  }
};

async function readBrakes(control: ControlPlane, group: string | undefined) {
  const client = control.client("admin", BrakeService);
  const answer = await control.attempt("admin", "read the brake", () => client.getBrake({}));
  if (group === undefined) return answer;
  const brakes = answer.brakes.filter((brake) => brake.group === group);
  if (brakes.length > 0) return create(GetBrakeResponseSchema, { ...answer, brakes });
  throw new Failure(`the brake has no group ${group}; \`rollcall brake status\` lists them all`);
}

function columnsAt(nowMs: number): readonly Column<Brake>[] {
  const count = (name: "size" | "silent" | "lost" | "pending", rank: number): Column<Brake> => ({
    title: name.toUpperCase(),
    name,
    rank,
    cell: (brake) => ({ text: String(brake[name]) }),
  });
  return [
    { title: "GROUP", name: "group", cell: ({ group }) => ({ text: group }) },
    {
      title: "STATE",
      name: "state",
      cell: ({ state }) => ({ text: brakeWord(state), style: brakeStyle(state) }),
    },
    {
      title: "FOR",
      name: "since",
      rank: 2,
      cell: ({ since }) => {
        if (since === undefined) return { text: "-", raw: "" };
        const sinceMs = timestampMs(since);
        return { text: formatDuration(nowMs - sinceMs), raw: new Date(sinceMs).toISOString() };
      },
    },
    count("size", 3),
    count("silent", 5),
    count("lost", 4),
    count("pending", 1),
    { title: "DETAIL", name: "detail", cell: (brake) => optionalCell(brakeDetail(brake)) },
  ];
}

interface BrakeCommandOptions {
  readonly group?: string;
  readonly message?: string;
  readonly requestId?: string;
  readonly strict?: boolean;
}

const brakeFreeze: Verb<BrakeCommandOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const { group = "cluster", message: reason = "", requestId = "", strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", BrakeService);
  const answer = await control.attempt("admin", `freeze the brake of ${group}`, () =>
    alreadyDone(shell, strict, () => client.freezeReactions({ group, reason, requestId })),
  );
  if (answer !== null) await writeAnswer(shell, format, [FreezeReactionsResponseSchema, answer], "Ok\n");
  else await nothingChanged(shell, format, control, group);
};

interface BrakeReleaseOptions extends BrakeCommandOptions {
  readonly now?: boolean;
  readonly yes?: boolean;
}

const brakeRelease: Verb<BrakeReleaseOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const { group = "cluster", message: reason = "", requestId = "", now = false, strict = false } = options;
  const control = reachControlPlane(shell, options);
  if (now && options.yes !== true && !(await isWanted(shell, control, group))) return;
  const client = control.client("admin", BrakeService);
  const answer = await control.attempt("admin", `release the brake of ${group}`, () =>
    alreadyDone(shell, strict, () => client.releaseReactions({ group, reason, requestId, now })),
  );
  if (answer !== null) await writeAnswer(shell, format, [ReleaseReactionsResponseSchema, answer], "Ok\n");
  else await nothingChanged(shell, format, control, group);
};

/** Print the brake that a verb had nothing to change about. */
async function nothingChanged(
  shell: Shell,
  format: (typeof ANSWER_FORMATS)[number],
  control: ControlPlane,
  group: string,
): Promise<void> {
  if (format === "table") shell.out.write("Ok\n");
  else await writePlain(shell, format, toPlain(GetBrakeResponseSchema, await readBrakes(control, group)));
}

async function isWanted(shell: Shell, control: ControlPlane, group: string): Promise<boolean> {
  const { brakes } = await readBrakes(control, undefined);
  const pending = brakes.find((brake) => brake.group === group)?.pending ?? 0;
  const question = `release ${pending === 1 ? "1 reaction" : `${pending} reactions`} of ${group} at once?`;
  if (shell.ask === null) throw new UsageError(`${question} There is no terminal to ask on: use --yes to do it`);
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

/** "NORMAL", "PARTIAL", "FULL", "FROZEN"; the number of a state that only a newer server knows. */
function brakeWord(state: BrakeState): string {
  return BrakeStateSchema.value[state]?.localName ?? String(state);
}

function brakeStyle(state: BrakeState): Style {
  if (state === BrakeState.NORMAL) return "good";
  return state === BrakeState.PARTIAL ? "warning" : "bad";
}

/** Why a brake is as it is, and how fast it releases reactions, in one line. */
function brakeDetail(brake: Brake): string {
  if (brake.state === BrakeState.FROZEN) {
    const why = brake.frozenReason === "" ? "" : `: ${brake.frozenReason}`;
    return `frozen by ${brake.frozenBy}${why}`;
  }
  const isLimited = brake.state !== BrakeState.NORMAL || brake.limitedByCluster;
  const rate = isLimited ? releaseWords(brake) : "";
  return brake.limitedByCluster ? `${rate}, by the cluster's brake` : rate;
}

const MINUTE_MS = 60_000;

/** "4 released a minute", "1 released every 2m", "none released". */
function releaseWords({ releasedPerMinute, releaseInterval }: Brake): string {
  if (releasedPerMinute === 0) return "none released";
  const everyMs = releaseInterval === undefined ? 0 : durationMs(releaseInterval);
  return everyMs > MINUTE_MS
    ? `1 released every ${formatExactDuration(everyMs)}`
    : `${releasedPerMinute} released a minute`;
}

/** What to say of brakes that are not NORMAL, a line each. */
export function brakeWarnings(brakes: readonly Brake[]): readonly string[] {
  return brakes
    .filter(({ state }) => state !== BrakeState.NORMAL)
    .map((brake) => {
      const { group, state, size, silent, lost, pending } = brake;
      const counts = `of ${size} nodes ${silent} silent, ${lost} lost; ${pending} reactions held back`;
      return `${group} is ${brakeWord(state)} (${brakeDetail(brake)}): ${counts}`;
    });
}
