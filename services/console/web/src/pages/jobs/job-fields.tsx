import type { JobSpec } from "@rollcall/api/rollcall/work/v1/work_pb";
import { useState } from "react";
import { editField, JOB_FIELDS, type JobField } from "../../state/jobs/job-fields.ts";
import { Field } from "../../ui/field.tsx";

/** The common fields of a job. Each change is made to the specification, which has the other fields. */
export function JobFields({
  spec,
  isNew,
  onChange,
  onFlaws,
}: {
  /** Null while the specification is invalid. */
  readonly spec: JobSpec | null;
  /** Whether the job can have another name. */
  readonly isNew: boolean;
  readonly onChange: (spec: JobSpec) => void;
  /** Called with the names of the fields that have an invalid text. */
  readonly onFlaws: (change: (names: ReadonlySet<string>) => ReadonlySet<string>) => void;
}) {
  return (
    <div className="grid narrow">
      {JOB_FIELDS.map((field) => (
        <SpecField
          key={field.name}
          {...{ field, spec, onChange }}
          disabled={spec === null || (field.name === "name" && !isNew)}
          onFlaw={(isWrong) =>
            onFlaws(
              (names) => new Set([...names].filter((name) => name !== field.name).concat(isWrong ? field.name : [])),
            )
          }
        />
      ))}
    </div>
  );
}

/** One field. It keeps the text that the user types until the specification has another value. */
function SpecField({
  field,
  spec,
  disabled,
  onChange,
  onFlaw,
}: {
  readonly field: JobField;
  readonly spec: JobSpec | null;
  readonly disabled: boolean;
  readonly onChange: (spec: JobSpec) => void;
  readonly onFlaw: (isWrong: boolean) => void;
}) {
  const value = spec === null ? "" : field.read(spec);
  const [typed, setTyped] = useState({ text: value, sent: value, wrong: "" });
  const isTyped = typed.sent === value;
  const type = (text: string) => {
    if (spec === null) return;
    const edit = editField(field, spec, text);
    setTyped(edit.ok ? { text, sent: field.read(edit.spec), wrong: "" } : { text, sent: value, wrong: edit.message });
    onFlaw(!edit.ok);
    if (edit.ok) onChange(edit.spec);
  };
  return (
    <Field
      label={field.label}
      hint={field.hint}
      wrong={isTyped && typed.wrong !== "" ? typed.wrong : undefined}
      disabled={disabled}
      spellCheck={false}
      autoComplete="off"
      value={isTyped ? typed.text : value}
      onChange={(event) => type(event.target.value)}
    />
  );
}
