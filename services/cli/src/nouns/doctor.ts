import type { Command } from "commander";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes, type Verb } from "../command.ts";
import { examine, examineCertificate } from "../doctor/examine.ts";
import { type Finding, type Verdict, worstOf } from "../doctor/finding.ts";
import { readNextCertificate } from "../doctor/next-certificate.ts";
import { Exit } from "../failure.ts";
import { withFailureCode } from "../failure-code.ts";
import { ANSWER_FORMATS, outputFormat, writePlain } from "../output/format.ts";
import { choosePaint, columnsOf, type Style } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { printable, wrapValue } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** Exit codes, as the help lists them. */
const PROBLEM = 1;
/** No problem was found, but there may be one. */
const NO_VERDICT = 3;

/** Define `doctor`. */
export function defineDoctor(command: Command, shell: Shell): void {
  addNotes(
    command,
    "It connects to every address of the control plane and of agents' streams from this machine, asks the registry " +
      "and admin, and judges: ports, TLS chains and when certificates end, clocks, the version, settings, latency, " +
      "connections, notifications and standbys of Postgres, descriptors, NATS, upkeep, the versions of processes and " +
      "agents, and whether agents trust the authorities that the control plane announces.",
    "--certificate checks one thing only: which agents would be locked out by a certificate that is about to replace " +
      "the present one. Its authority must follow it in the file, unless the control plane announces it.",
    "Facts about the deployment need a token of the role admin. What could not be checked is said, and is no problem.",
    "Exit codes: 0 when nothing is wrong, warnings or not; 1 when there is a problem; 3 when none was found, but not " +
      "everything could be checked, or doctor itself failed; 2 for wrong usage.",
    '-o json|yaml prints {"verdict", "findings": [{"check", "subject", "verdict", "found", "advice"}]}; a verdict is ' +
      "one of ok, warning, unknown and problem.",
  );
  command.option("--certificate <file>", "Check which agents this certificate would lock out (PEM, with its chain)");
  command.action(action(shell, doctor));
}

interface DoctorOptions {
  readonly certificate?: string;
}

const doctor: Verb<DoctorOptions> = withFailureCode(NO_VERDICT, async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const control = reachControlPlane(shell, options);
  const { certificate } = options;
  const findings =
    certificate === undefined
      ? await examine(control, shell)
      : await examineCertificate(control, await readNextCertificate(control, shell, certificate));
  const verdict = worstOf(findings);
  if (format === "table") {
    const look = { paint: choosePaint(shell, options), columns: columnsOf(shell) };
    shell.out.write(new TablePrinter(COLUMNS, look).print(findings));
    shell.out.write(adviceText(findings, look.columns));
  } else {
    await writePlain(shell, format, { verdict, findings: findings.map((it) => ({ ...it })) });
  }
  if (verdict === "problem") throw new Exit(PROBLEM);
  if (verdict === "unknown") throw new Exit(NO_VERDICT);
});

const STYLES: Readonly<Record<Verdict, Style>> = { ok: "good", warning: "warning", unknown: "warning", problem: "bad" };

const COLUMNS: readonly Column<Finding>[] = [
  { title: "CHECK", name: "check", cell: ({ check }) => ({ text: check }) },
  { title: "ABOUT", name: "subject", limit: 48, cell: ({ subject }) => ({ text: subject }) },
  { title: "VERDICT", name: "verdict", cell: ({ verdict }) => ({ text: verdict, style: STYLES[verdict] }) },
  { title: "FOUND", name: "found", rank: 1, limit: 100, cell: ({ found }) => ({ text: found }) },
];

/** What to do, the worst first. */
function adviceText(findings: readonly Finding[], columns: number): string {
  const order: readonly Verdict[] = ["problem", "unknown", "warning"];
  const parts = order.flatMap((verdict) =>
    findings
      .filter((it) => it.verdict === verdict)
      .map(({ check, subject, found, advice }) => {
        const label = `${verdict}: `;
        const what = printable(`${check} of ${subject}: ${found}`);
        const text = wrapValue(label, what, columns, label.length);
        return `${text}\n${wrapValue(DO, printable(advice), columns, DO.length)}\n`;
      }),
  );
  return parts.length === 0 ? "\nNothing is wrong.\n" : `\n${parts.join("")}`;
}

const DO = "  do: ";
