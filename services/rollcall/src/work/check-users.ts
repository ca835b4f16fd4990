import type { WorkConfig } from "@rollcall/agent";
import { UsageError } from "@rollcall/cli";
import { closedGroupOf } from "@rollcall/keeper";

/**
 * Refuse users whose groups can become root. Throws a UsageError with all problems. A user that does not exist yet is
 * checked again before an execution runs as that user.
 */
export async function checkWorkUsers(values: Pick<WorkConfig, "Work.User" | "Work.Users">): Promise<void> {
  const { "Work.User": user, "Work.Users": users } = values;
  const named = [
    ...(user === undefined ? [] : [["Work.User", user] as const]),
    ...users.map((one) => ["Work.Users", one] as const),
  ];
  const problems: string[] = [];
  for (const [key, name] of named) {
    const group = await closedGroupOf(name);
    if (group === null) continue;
    problems.push(`  ${key}: ${name} belongs to the group ${group}, whose members can become root`);
  }
  if (problems.length > 0) throw new UsageError(`invalid configuration:\n${problems.join("\n")}`);
}
