import type { Command } from "commander";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes } from "../command.ts";
import { examine, examineCertificate } from "../doctor/examine.ts";
import { type Finding, groupFindings, type Status, worstOf } from "../doctor/finding.ts";
import { readNextCertificate } from "../doctor/next-certificate.ts";
import { Exit } from "../failure.ts";
import { withFailureCode } from "../failure-code.ts";
import type { Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, writePlain } from "../output/format.ts";
import { choosePaint, columnsOf, type Style } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { printable, wrapValue } from "../output/text.ts";
import type { Parts, RunAgain } from "../parts.ts";
import type { Shell } from "../shell.ts";

/** Exit codes, as listed in the help. */
const PROBLEM = 1;
/** The exit code when no problem was found, but not everything could be checked. */
const NO_RESULT = 3;

/** Define `doctor`. */
export function defineDoctor(command: Command, shell: Shell, _parts: Parts, again: RunAgain): void {
  addNotes(
    command,
    "Connects from this machine to every address of the control plane and of agents' streams, queries the registry " +
      "and admin, and checks: ports, TLS chains and certificate expiry, clocks, the version, settings, latency, " +
      "connections, notifications and standbys of Postgres, descriptors, NATS, upkeep, the versions of processes and " +
      "agents, and whether agents trust the authorities that the control plane announces.",
    "--certificate only checks which agents would be locked out by a certificate that is about to replace " +
      "the current one. Its authority must follow it in the file, unless the control plane announces it.",
    "--bundle collects versions, findings, states, configuration without secrets, the latest events, metrics and " +
      "logs. It does not overwrite a file.",
    "Checks of the deployment need a token with the role admin. A check that cannot be made is reported as unknown.",
    "Exit codes: 0 if there is no problem, even with warnings; 1 if there is a problem; 3 if none was found, but not " +
      "everything could be checked, or doctor itself failed; 2 for wrong usage.",
    '-o json|yaml prints {"status", "findings": [{"check", "subject", "status", "found", "advice"}]}; a status is ' +
      "one of ok, warning, unknown and problem.",
  );
  command.option("--certificate <file>", "Check which agents this certificate would lock out (PEM, with its chain)");
  command.option("--bundle <file>", "Write an archive (.tar.gz) for a maintainer, and print its contents");
  const bundling: Verb<DoctorOptions> = async ({ shell: own, options }) => {
    const { writeBundle } = await import("../doctor/bundle.ts");
    await writeBundle(own, options, options.bundle ?? "", again);
  };
  command.action(
    action<DoctorOptions>(shell, (invocation) =>
      invocation.options.bundle === undefined ? doctor(invocation) : withFailureCode(NO_RESULT, bundling)(invocation),
    ),
  );
}

interface DoctorOptions {
  readonly certificate?: string;
  readonly bundle?: string;
}

const doctor: Verb<DoctorOptions> = withFailureCode(NO_RESULT, async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const control = reachControlPlane(shell, options);
  const { certificate } = options;
  const findings =
    certificate === undefined
      ? await examine(control, shell)
      : await examineCertificate(control, await readNextCertificate(control, shell, certificate));
  const status = worstOf(findings);
  if (format === "table") {
    const look = { paint: choosePaint(shell, options), columns: columnsOf(shell) };
    // If every status is "ok", leave out the status first when the table is too wide.
    const isFine = findings.every((it) => it.status === "ok");
    const columns = COLUMNS.map((column) => (isFine && column.name === "status" ? { ...column, rank: 2 } : column));
    shell.out.write(new TablePrinter(columns, look).print(findings));
    shell.out.write(adviceText(findings, look.columns));
  } else {
    await writePlain(shell, format, { status, findings: findings.map((it) => ({ ...it })) });
  }
  if (status === "problem") throw new Exit(PROBLEM);
  if (status === "unknown") throw new Exit(NO_RESULT);
});

const STYLES: Readonly<Record<Status, Style>> = { ok: "good", warning: "warning", unknown: "warning", problem: "bad" };

const COLUMNS: readonly Column<Finding>[] = [
  { title: "CHECK", name: "check", cell: ({ check }) => ({ text: check }) },
  { title: "ABOUT", name: "subject", limit: 48, cell: ({ subject }) => ({ text: subject }) },
  { title: "STATUS", name: "status", cell: ({ status }) => ({ text: status, style: STYLES[status] }) },
  { title: "FOUND", name: "found", rank: 1, limit: 100, wraps: true, cell: ({ found }) => ({ text: found }) },
];

/** What to do, worst findings first. Findings with the same advice are listed together, followed by the advice. */
function adviceText(findings: readonly Finding[], columns: number): string {
  const order: readonly Status[] = ["problem", "unknown", "warning"];
  const parts = order.flatMap((status) => {
    const withStatus = findings.filter((it) => it.status === status);
    const label = `${status}: `;
    return groupFindings(withStatus, ({ advice }) => advice).map((alike) => {
      const texts = alike.map(({ check, subject, found }) =>
        wrapValue(label, printable(`${check} of ${subject}: ${found}`), columns, label.length),
      );
      return `${texts.join("\n")}\n${wrapValue(DO, printable(alike[0]?.advice ?? ""), columns, DO.length)}\n`;
    });
  });
  return parts.length === 0 ? "\nNo problems found.\n" : `\n${parts.join("")}`;
}

const DO = "  do: ";
