import { type InputHTMLAttributes, type ReactNode, useId } from "react";

/** A labeled text field. */
export function Field({
  label,
  hint,
  wrong,
  ...input
}: InputHTMLAttributes<HTMLInputElement> & {
  readonly label: string;
  readonly hint?: string;
  readonly wrong?: string | undefined;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input id={id} className="input" aria-invalid={wrong !== undefined} aria-describedby={`${id}-hint`} {...input} />
      <span id={`${id}-hint`} className={wrong === undefined ? "hint" : "wrong"}>
        {wrong ?? hint ?? ""}
      </span>
    </div>
  );
}

/** A labeled selection of one option. */
export function Choice({
  label,
  value,
  onChange,
  options,
  hideLabel,
}: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly hideLabel?: boolean;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id} className={hideLabel ? "hidden-text" : ""}>
        {label}
      </label>
      <select id={id} className="input" value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A labelled switch. */
export function Check({
  children,
  checked,
  onChange,
}: {
  readonly children: ReactNode;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <span>{children}</span>
    </label>
  );
}
