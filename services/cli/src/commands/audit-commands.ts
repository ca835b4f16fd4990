import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { AuditListOptions } from "../verbs/audit-list.ts";
import type { AuditVerifyOptions } from "../verbs/audit-verify.ts";
import { lazily } from "./lazily.ts";

/** Add `audit` and its verbs. */
export function addAuditCommands(program: Command, shell: Shell): void {
  const audit = program.command("audit").description("who did what, and who was refused what; needs the role admin");
  addList(audit, shell);
  addVerify(audit, shell);
}

function addList(audit: Command, shell: Shell): void {
  audit
    .command("list")
    .description("print the audit log, the newest entries first")
    .option("--actor <actor>", 'only what this actor did: "token:<id>", "user:<subject>", "node:<id>"')
    .option("--method <method>", "only calls of this method, for example ApproveNode")
    .option("--target <target>", "only what was about this target, for example a node id; exactly")
    .option("--outcome <outcome>", "only this outcome: OK, or a reason such as ROLE_TOO_LOW")
    .option("--since <time>", "only what came since: a duration ago such as 1h, or a time")
    .option("--until <time>", "only what came before: a duration ago, or a time")
    .option("--limit <count>", "at most so many entries; 0 is all (default: 100)")
    .option("--oldest-first", "in the order in which things happened")
    .option("--wide", "do not cut long values short")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      `
Times are RFC 3339, such as 2026-05-01T12:00:00Z, or a day such as 2026-05-01, which begins in UTC.
--output json|yaml prints a rollcall.admin.v1.ListAuditEntriesResponse in proto JSON: {"entries": [...], "nextPageToken": "..."}.`,
    )
    .action(lazily<AuditListOptions>(shell, async () => (await import("../verbs/audit-list.ts")).auditList));
}

function addVerify(audit: Command, shell: Shell): void {
  audit
    .command("verify")
    .description("check that nobody changed, removed or added an entry by hand")
    .option("--expect-head <seq:hash>", "a head that an earlier verify printed: it must still be in the log")
    .addHelpText(
      "after",
      `
Exit code 1 when the log is broken; the text names the first entry that is. Whoever can write to the whole database can also write the
whole log anew: keep the head that is printed somewhere else, and give it to --expect-head the next time.
--output json|yaml prints a rollcall.admin.v1.VerifyAuditLogResponse.`,
    )
    .action(lazily<AuditVerifyOptions>(shell, async () => (await import("../verbs/audit-verify.ts")).auditVerify));
}
