import { JobService, type PlanJobResponse } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { JobSpec } from "@rollcall/api/rollcall/work/v1/work_pb";
import { useId, useRef, useState } from "react";
import { goTo } from "../../app/address.ts";
import { clientOf } from "../../live/clients.ts";
import { RequestIds } from "../../state/bulk.ts";
import { command } from "../../state/cli-command.ts";
import { firstJob } from "../../state/jobs/job-fields.ts";
import { isWhole, jobText, parseJobText } from "../../state/jobs/job-text.ts";
import { countOf } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Reason } from "../../ui/state-mark.tsx";
import { say, useAct } from "../../ui/toasts.tsx";
import { jobPath } from "./execution-table.tsx";
import { JobFields } from "./job-fields.tsx";

const jobs = clientOf(JobService);
const NO_FLAWS: ReadonlySet<string> = new Set();

/** A job as it is when the user starts to edit it. */
interface EditedJob {
  readonly spec: JobSpec;
  /** The submission is refused if the job has changed since. */
  readonly etag: string;
}

/** Submits a job from its specification: a new one, or another version of `job`. A preview shows the effect. */
export function JobForm({ job, onClose }: { readonly job: EditedJob | null; readonly onClose: () => void }) {
  const [text, setText] = useState(() => jobText(job?.spec ?? firstJob()));
  const [reason, setReason] = useState("");
  const [preview, setPreview] = useState<{ readonly of: string; readonly answer: PlanJobResponse } | null>(null);
  const requestIds = useRef(new RequestIds());
  const { busy, act } = useAct();
  const id = useId();
  const parsed = parseJobText(text, job?.spec.name);
  const [flaws, setFlaws] = useState<ReadonlySet<string>>(NO_FLAWS);
  // The fields start again when the text is edited, and forget what is wrong with them.
  const [edits, setEdits] = useState(0);
  const isShort = job !== null && !isWhole(job.spec);
  const isValid = parsed.ok && flaws.size === 0 && !isShort;
  const etag = job?.etag ?? "";
  const look = () =>
    act("Preview", async () => {
      if (parsed.ok) setPreview({ of: text, answer: await jobs.planJob({ spec: parsed.spec, etag }) });
    });
  const submit = () =>
    act("Submit", async () => {
      if (!parsed.ok) return;
      const requestId = requestIds.current.of("submit", text, reason, etag);
      const { changed, warnings } = await jobs.submitJob({ spec: parsed.spec, reason, etag, requestId });
      say("good", [changed ? "Submitted" : "Nothing changed", ...warnings].join("; "));
      onClose();
      goTo(jobPath(parsed.spec.name));
    });
  return (
    <Dialog title={job === null ? "Submit a job" : `Edit ${job.spec.name}`} onClose={onClose} wide>
      <JobFields
        key={edits}
        spec={parsed.ok ? parsed.spec : null}
        isNew={job === null}
        onChange={(spec) => setText(jobText(spec))}
        onFlaws={setFlaws}
      />
      {isShort && (
        <Notice tone="bad">A job file cannot express this job. Change it with the program that submitted it.</Notice>
      )}
      <div className="field">
        <label htmlFor={id}>Edit as YAML</label>
        <textarea
          id={id}
          className="input mono"
          rows={10}
          spellCheck={false}
          aria-invalid={!parsed.ok}
          aria-describedby={`${id}-hint`}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setFlaws(NO_FLAWS);
            setEdits((before) => before + 1);
          }}
        />
        <span id={`${id}-hint`} className={parsed.ok ? "hint" : "wrong"}>
          {parsed.ok ? "Every key of a job file, as `rollcall job run FILE` reads it" : parsed.message}
        </span>
      </div>
      <Field
        label="Reason (optional)"
        hint="Stored with the change"
        maxLength={1024}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      {preview?.of === text && <Preview plan={preview.answer} />}
      <CopyCommand
        text={command("job", "run", "job.yaml", ...(reason === "" ? [] : ["-m", reason]))}
        label="Command line"
      />
      <div className="actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button disabled={!isValid || busy} onClick={look}>
          Preview
        </Button>
        <Button look="primary" disabled={!isValid || busy} onClick={submit}>
          Submit
        </Button>
      </div>
    </Dialog>
  );
}

/** What the submission would do, and why some executions would wait. */
function Preview({
  plan: { executions, waiting, refusals, nodes, version, refusal },
}: {
  readonly plan: PlanJobResponse;
}) {
  if (refusal !== undefined) return <Notice tone="bad">It would be refused: {refusal.message}</Notice>;
  return (
    <Notice tone={waiting > 0 ? "warn" : "good"}>
      Version {version}: {countOf(executions.length, "execution")} ({waiting === 0 ? "none" : waiting} would wait);{" "}
      {countOf(nodes, "node")} considered.
      {refusals.map(({ reason, message, nodes: refusing }) => (
        <div key={reason}>
          {countOf(Number(refusing), "node")}: {message} <Reason of={reason} />
        </div>
      ))}
    </Notice>
  );
}
