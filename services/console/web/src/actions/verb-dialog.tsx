import { useEffect, useRef, useState } from "react";
import { type Outcome, RequestIds } from "../state/bulk.ts";
import { command, MOST_NAMES, type NodeVerb, nodeCommand } from "../state/cli-command.ts";
import { labelWords, parseLabelWords } from "../state/label-words.ts";
import { parseDuration } from "../state/time-words.ts";
import { Button } from "../ui/button.tsx";
import { CopyCommand } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Check, Field } from "../ui/field.tsx";
import { Notice } from "../ui/notices.tsx";
import { say, sayFailure } from "../ui/toasts.tsx";
import { NamedNodes, Outcomes } from "./named-nodes.tsx";
import { runVerb, VERBS, type VerbOptions } from "./verbs.ts";

/** The outcomes of a call. For a dry run, `dryFor` has the options that were used. */
interface Told {
  readonly outcomes: readonly Outcome[];
  readonly dryFor: string | null;
}

/** Asks the user to confirm a verb: shows the nodes, asks for a reason, and offers a dry run. */
export function VerbDialog({
  verb,
  ids,
  onClose,
}: {
  readonly verb: NodeVerb | "label";
  readonly ids: readonly string[];
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState("");
  const [labels, setLabels] = useState("");
  const [deadline, setDeadline] = useState("1h");
  const [force, setForce] = useState(false);
  const [ignoreDaemons, setIgnoreDaemons] = useState(false);
  const [told, setTold] = useState<Told | null>(null);
  const requestIds = useRef(new RequestIds());
  const stopper = useRef<AbortController | null>(null);
  useEffect(() => () => stopper.current?.abort(), []);
  const [busy, setBusy] = useState<number | null>(null);
  const description = verb === "label" ? LABEL : VERBS[verb];
  const words = parseLabelWords(labels);
  const deadlineMs = parseDuration(deadline);
  const lacksReason = description.needsReason === true && reason.trim() === "";
  const isReady = !lacksReason && (verb !== "label" || words.ok) && (verb !== "drain" || deadlineMs !== null);
  const options = (validateOnly: boolean): VerbOptions => ({
    reason,
    validateOnly,
    ...(verb === "label" && words.ok ? { labels: words } : {}),
    ...(verb === "drain" ? { drain: { deadlineS: Math.ceil((deadlineMs ?? 0) / 1000), force, ignoreDaemons } } : {}),
  });
  // Compare the options, because a dry run is valid only for the options that were used for it.
  const wished = JSON.stringify(options(true));
  const outcomes = told === null || (told.dryFor !== null && told.dryFor !== wished) ? null : told.outcomes;
  const run = async (validateOnly: boolean) => {
    setBusy(0);
    const controller = new AbortController();
    stopper.current = controller;
    const { signal } = controller;
    const sending = { signal, requestIds: requestIds.current, onOutcomes: setBusy };
    const { outcomes: all, failure } = await runVerb(verb, ids, options(validateOnly), sending);
    setBusy(null);
    if (failure !== null) sayFailure(description.label, failure);
    else if (!validateOnly && !signal.aborted) requestIds.current.answered();
    // Keep dry runs and refusals on screen.
    if (validateOnly || all.some(({ refusal }) => refusal !== "")) {
      return setTold({ outcomes: all, dryFor: validateOnly ? wished : null });
    }
    say("good", `${description.label}: done for ${all.length === 1 ? (all[0]?.id ?? "") : `${all.length} nodes`}`);
    onClose();
  };
  const close = () => (busy === null ? onClose() : stopper.current?.abort());
  const more = [
    ...(verb === "drain" && deadline !== "1h" ? ["--deadline", deadline] : []),
    ...(verb === "drain" && force ? ["--force"] : []),
    ...(verb === "drain" && ignoreDaemons ? ["--ignore-daemons"] : []),
  ];
  const message = reason === "" ? [] : ["-m", reason];
  const text =
    verb === "label"
      ? command("node", "label", ...ids, ...labelWords(labels), ...message)
      : nodeCommand(verb, ids, reason, more);
  const subject = ids.length === 1 ? (ids[0] ?? "") : `${ids.length.toLocaleString("en-US")} nodes`;
  return (
    <Dialog title={`${description.label} ${subject}`} onClose={close}>
      <p className="soft">{description.tells}</p>
      <NamedNodes ids={ids} />
      {verb === "label" && (
        <Field
          label="Labels"
          hint="zone=a sets a label, spot- removes one"
          value={labels}
          onChange={(event) => setLabels(event.target.value)}
          wrong={labels !== "" && !words.ok ? words.message : undefined}
          autoFocus
        />
      )}
      {verb === "drain" && (
        <>
          <Field
            label="Deadline"
            hint="When to stop the remaining work; 0s means immediately"
            value={deadline}
            wrong={deadlineMs === null ? "for example 30m or 1h" : undefined}
            onChange={(event) => setDeadline(event.target.value)}
          />
          <Check checked={force} onChange={setForce}>
            Stop everything immediately, and do not wait for a lost node
          </Check>
          <Check checked={ignoreDaemons} onChange={setIgnoreDaemons}>
            Keep daemons running
          </Check>
        </>
      )}
      <Field
        label={description.needsReason ? "Reason" : "Reason (optional)"}
        hint="Stored with the change and shown to the node"
        maxLength={1024}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        autoFocus={verb !== "label"}
      />
      {outcomes !== null && <Outcomes outcomes={outcomes} />}
      {ids.length <= MOST_NAMES ? (
        <CopyCommand text={text} label="Command line" />
      ) : (
        <p className="soft small">Too many nodes for one command (maximum {MOST_NAMES}).</p>
      )}
      {busy !== null && <Notice tone="busy">{`${busy} of ${ids.length} done`}</Notice>}
      <div className="actions">
        <Button onClick={close}>{busy === null ? "Cancel" : "Stop"}</Button>
        <Button disabled={!isReady || busy !== null} onClick={() => run(true)}>
          Dry run
        </Button>
        <Button
          look={description.danger ? "danger" : "primary"}
          disabled={!isReady || busy !== null}
          onClick={() => run(false)}
        >
          {description.label} {subject}
        </Button>
      </div>
    </Dialog>
  );
}

const LABEL = {
  label: "Label",
  tells: "Operators' labels override those of join tokens and of the node itself.",
  danger: false,
  needsReason: false,
};
