import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Brake,
  BrakeSchema,
  BrakeState as ProtoState,
} from "@rollcall/api/rollcall/admin/v1/brake_pb";
import {
  addBrakeSums,
  BRAKE_CLUSTER,
  BRAKE_WINDOW_MS,
  type BrakeMarks,
  type BrakeReading,
  type BrakeRow,
  type BrakeState,
  type GroupLosses,
  type GroupSum,
  releasesPerMinute,
} from "@rollcall/domain";
import { type Db, listBrakes, lossBefore, readBrake } from "@rollcall/store";

/** Every brake as the record shows it: the cluster's first, then groups by name. */
export async function readBrakes(db: Db): Promise<readonly Brake[]> {
  const reading = await readBrake(db, await readMarks(db));
  const totals = addBrakeSums([...reading.reports.values()]);
  const rows = new Map(reading.rows.map((row) => [row.group, row]));
  return groupsOf(reading, totals).map((group) =>
    toProto(group, rows.get(group) ?? null, totals.get(group), lossesOf(group, reading.losses)),
  );
}

/** What the brake of a group is, with an operator's freeze. */
function stateOf(row: Pick<BrakeRow, "mode" | "frozen">): BrakeState {
  return row.frozen === null ? row.mode : "FROZEN";
}

/** The losses of the last minute count, or those of a storm since it began. */
async function readMarks(db: Db): Promise<BrakeMarks> {
  const window = await lossBefore(db, BRAKE_WINDOW_MS);
  const rows = await listBrakes(db);
  const own = rows.filter(({ mode, windowLoss }) => mode !== "NORMAL" || windowLoss > window);
  return {
    settled: 0,
    window,
    windows: new Map(own.map(({ group, windowLoss }) => [group, windowLoss])),
  };
}

function groupsOf(
  { losses, rows }: BrakeReading,
  totals: ReadonlyMap<string, GroupSum>,
): readonly string[] {
  const names = [...totals.keys(), ...losses, ...rows].map((it) =>
    typeof it === "string" ? it : it.group,
  );
  const groups = new Set(names.filter((name) => name !== "" && name !== BRAKE_CLUSTER));
  return [BRAKE_CLUSTER, ...[...groups].sort()];
}

function lossesOf(
  group: string,
  losses: readonly GroupLosses[],
): { readonly lost: number; readonly pending: number } {
  if (group !== BRAKE_CLUSTER) {
    return losses.find((it) => it.group === group) ?? { lost: 0, pending: 0 };
  }
  return {
    lost: losses.reduce((sum, { lostOfCluster }) => sum + lostOfCluster, 0),
    pending: losses.reduce((sum, { pending }) => sum + pending, 0),
  };
}

function toProto(
  group: string,
  row: BrakeRow | null,
  { healthy, silent }: GroupSum = { healthy: 0, silent: 0 },
  { lost, pending }: { readonly lost: number; readonly pending: number },
): Brake {
  const { mode = "NORMAL", frozen = null } = row ?? {};
  const state = stateOf({ mode, frozen });
  const size = row === null || mode === "NORMAL" ? healthy + lost : row.size;
  const sinceMs = frozen?.sinceMs ?? row?.sinceMs;
  return create(BrakeSchema, {
    group,
    state: STATES[state],
    automaticState: STATES[mode],
    ...(sinceMs === undefined ? {} : { since: timestampFromMs(sinceMs) }),
    ...{ size, silent, lost, pending },
    releasedPerMinute: state === "PARTIAL" ? releasesPerMinute(size) : 0,
    frozenBy: frozen?.actor ?? "",
    frozenReason: frozen?.reason ?? "",
  });
}

const STATES: Readonly<Record<BrakeState, ProtoState>> = {
  NORMAL: ProtoState.NORMAL,
  PARTIAL: ProtoState.PARTIAL,
  FULL: ProtoState.FULL,
  FROZEN: ProtoState.FROZEN,
};
