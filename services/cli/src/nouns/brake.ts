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
import { stateWords } from "@rollcall/domain";
import type { Command } from "commander";
import { type ActorNames, PagedActorNames, plainActorNames } from "../client/actor-names.ts";
import { alreadyDone } from "../client/already-done.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addListingOptions, addNotes, STRICT } from "../command.ts";
import { Failure, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { CHANGE_FORMATS, type ChangeFormat, writeChange, writeWords } from "../output/change.ts";
import { outputFormat, toPlain, writePlain } from "../output/format.ts";
import { type ListingOptions, onePage, printListing } from "../output/listing.ts";
import type { Style } from "../output/style.ts";
import { type Column, optionalCell, stateCell } from "../output/table.ts";
import { counted } from "../output/text.ts";
import { formatDuration, formatExactDuration } from "../output/units.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `brake`. */
export function defineBrake(brake: Command, shell: Shell): void {
  const status = brake
    .command("status")
    .description("Show the brake of the cluster and of every group")
    .option("--group <group>", "Show only this group: cluster, or for example zone=a")
    .action(action(shell, brakeStatus));
  addNotes(
    addListingOptions(status),
    `  NORMAL   each reaction is released a few seconds after its node is lost
  PARTIAL  more than 55 % of the group is silent or lost: reactions for up to a
           tenth of its nodes are released per minute
  FULL     the whole group is silent or lost: nothing is released
  FROZEN   nothing is released, because an operator froze it`,
    "-o json|yaml prints a rollcall.admin.v1.GetBrakeResponse in proto JSON; -o csv prints RFC 4180.",
  );
  const freeze = brake.command("freeze").description("Hold back all reactions until the brake is released");
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
      .option("--now", "Release all pending reactions now, regardless of the brake")
      .option("-y, --yes", "With --now: do not ask for confirmation"),
    "With --now and without --group, the reactions of all groups that are not frozen themselves are released. " +
      "The brake applies to later losses again.",
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
  const names = new PagedActorNames(control);
  const page = await printListing(invocation, {
    columns: columnsAt(shell.wallMs(), (actor) => names.nameOf(actor)),
    nameOf: ({ group }: Brake) => group,
    pages: onePage(() => readBrakes(control, options.group)),
    itemsOf: async ({ brakes }) => {
      await names.learn(brakes.map(({ frozenBy }) => frozenBy));
      return brakes;
    },
    whole: (pages) => toPlain(GetBrakeResponseSchema, pages[0] ?? create(GetBrakeResponseSchema)),
  });
  const isForPrograms = options.output !== undefined && options.output !== "table" && options.output !== "wide";
  if (page?.decider === "" && !isForPrograms) {
    shell.err.write("no process runs the brake now, so nothing is released\n");
  }
};

async function readBrakes(control: ControlPlane, group: string | undefined) {
  const client = control.client("admin", BrakeService);
  const answer = await control.attempt("admin", "read the brake", () => client.getBrake({}));
  if (group === undefined) return answer;
  const brakes = answer.brakes.filter((brake) => brake.group === group);
  if (brakes.length > 0) return create(GetBrakeResponseSchema, { ...answer, brakes });
  throw new Failure(`the brake has no group ${group}; \`rollcall brake status\` lists all groups`);
}

function columnsAt(nowMs: number, names: ActorNames): readonly Column<Brake>[] {
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
      cell: ({ state }) => ({ ...stateCell(stateName(state)), style: brakeStyle(state) }),
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
    {
      title: "DETAIL",
      name: "detail",
      cell: (brake) => ({ ...optionalCell(brakeDetail(brake, names)), raw: brakeDetail(brake, (actor) => actor) }),
    },
  ];
}

interface BrakeCommandOptions {
  readonly group?: string;
  readonly message?: string;
  readonly requestId?: string;
  readonly strict?: boolean;
}

const brakeFreeze: Verb<BrakeCommandOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const { group = "cluster", message: reason = "", requestId = "", strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", BrakeService);
  const answer = await control.attempt("admin", `freeze the brake of ${group}`, () =>
    alreadyDone(shell, { strict, format }, () => client.freezeReactions({ group, reason, requestId })),
  );
  const words = { object: brakeName(group), result: "frozen" };
  if (answer !== null) await writeChange(shell, format, [FreezeReactionsResponseSchema, answer], words);
  else await nothingChanged(shell, format, control, group);
};

interface BrakeReleaseOptions extends BrakeCommandOptions {
  readonly now?: boolean;
  readonly yes?: boolean;
}

const brakeRelease: Verb<BrakeReleaseOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const { group = "cluster", message: reason = "", requestId = "", now = false, strict = false } = options;
  const control = reachControlPlane(shell, options);
  if (now && options.yes !== true && !(await isWanted(shell, control, group))) return;
  const client = control.client("admin", BrakeService);
  const answer = await control.attempt("admin", `release the brake of ${group}`, () =>
    alreadyDone(shell, { strict, format }, () => client.releaseReactions({ group, reason, requestId, now })),
  );
  const words = { object: brakeName(group), result: "released" };
  if (answer !== null) await writeChange(shell, format, [ReleaseReactionsResponseSchema, answer], words);
  else await nothingChanged(shell, format, control, group);
};

/** Print the unchanged brake for scripts. */
async function nothingChanged(shell: Shell, format: ChangeFormat, control: ControlPlane, group: string): Promise<void> {
  if (format === "name") writeWords(shell, format, { object: brakeName(group), result: "" });
  else if (format !== "table") {
    await writePlain(shell, format, toPlain(GetBrakeResponseSchema, await readBrakes(control, group)));
  }
}

function brakeName(group: string): string {
  return `brake of ${group}`;
}

async function isWanted(shell: Shell, control: ControlPlane, group: string): Promise<boolean> {
  const { brakes } = await readBrakes(control, undefined);
  const pending = brakes.find((brake) => brake.group === group)?.pending ?? 0;
  const question = `release ${counted(pending, "reaction")} of ${group} at once?`;
  if (shell.ask === null)
    throw new UsageError(`cannot ask whether to ${question.slice(0, -1)} without a terminal: use --yes to confirm`);
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

/** "NORMAL", "PARTIAL", "FULL" or "FROZEN"; for a state that only a newer server knows, its number. */
function stateName(state: BrakeState): string {
  return BrakeStateSchema.value[state]?.localName ?? String(state);
}

function brakeStyle(state: BrakeState): Style {
  if (state === BrakeState.NORMAL) return "good";
  return state === BrakeState.PARTIAL ? "warning" : "bad";
}

/** Why a brake is in its state, and how fast it releases reactions, on one line. */
function brakeDetail(brake: Brake, names: ActorNames): string {
  if (brake.state === BrakeState.FROZEN) {
    const why = brake.frozenReason === "" ? "" : `: ${brake.frozenReason}`;
    return `frozen by ${names(brake.frozenBy)}${why}`;
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

/** Warnings about brakes that are not NORMAL, one line each. */
export function brakeWarnings(brakes: readonly Brake[], names = plainActorNames): readonly string[] {
  return brakes
    .filter(({ state }) => state !== BrakeState.NORMAL)
    .map((brake) => {
      const { group, state, size, silent, lost, pending } = brake;
      const held = counted(pending, "reaction");
      const counts = `of ${counted(size, "node")} ${silent} silent, ${lost} lost; ${held} held back`;
      return `${group} is ${stateWords(stateName(state))} (${brakeDetail(brake, names)}): ${counts}`;
    });
}
