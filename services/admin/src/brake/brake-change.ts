import type { Brake } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { BRAKE_CLUSTER, type BrakeRow, type NewEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { AuditedCall } from "@rollcall/rpc";
import { AUDIT_OK, type Change, lockBrake, type Tx } from "@rollcall/store";
import { readBrakes } from "./brake-view.ts";

/** What an operator wants of one brake. */
export interface BrakeCommand {
  /** Empty means the cluster. */
  readonly group: string;
  readonly reason: string;
  readonly call: AuditedCall;
}

const MOST_NAMED = 3;

/**
 * Change one brake: lock it, and answer it as it is then, with the event of the change if there is one, and an audit
 * row. Throws BRAKE_GROUP_NOT_FOUND, or what `change` throws.
 */
export async function changeBrake(
  tx: Tx,
  { group: named, reason, call }: BrakeCommand,
  change: (row: BrakeRow) => Promise<NewEvent | null>,
): Promise<Change<Brake>> {
  const group = named === "" ? BRAKE_CLUSTER : named;
  checkKnown(group, await readBrakes(tx));
  const event = await change(await lockBrake(tx, group));
  const after = (await readBrakes(tx)).find((brake) => brake.group === group);
  if (after === undefined) throw new Error(`the brake of ${group} is gone while it is locked`);
  return {
    result: after,
    events: event === null ? [] : [event],
    audit: [{ ...call, target: group, reason, outcome: AUDIT_OK }],
  };
}

function checkKnown(group: string, brakes: readonly Brake[]): void {
  if (brakes.some((brake) => brake.group === group)) return;
  const groups = brakes.map((brake) => brake.group);
  const more = groups.length > MOST_NAMED ? ", …" : "";
  const known = `${groups.slice(0, MOST_NAMED).join(", ")}${more}`;
  const message = `the brake has no group ${group}: no replica counts such nodes. There are ${known}; rollcall brake status lists them`;
  throw refuse("BRAKE_GROUP_NOT_FOUND", message, { metadata: { group, groups: known } });
}
