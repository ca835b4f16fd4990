import { Fragment, type ReactNode } from "react";

/** A section of a page with a heading. */
export function Panel({
  title,
  actions,
  flush,
  children,
}: {
  readonly title: ReactNode;
  readonly actions?: ReactNode;
  /** Whether to leave out the padding, for tables. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {actions !== undefined && <div className="row">{actions}</div>}
      </header>
      <div className={flush ? "body flush" : "body"}>{children}</div>
    </section>
  );
}

/** The head of a page with its actions. `within` links to the parent list. */
export function PageHead({
  title,
  within,
  children,
}: {
  readonly title: ReactNode;
  readonly within?: ReactNode;
  readonly children?: ReactNode;
}) {
  return (
    <header className="page-head">
      <div>
        {within !== undefined && <div className="within">{within}</div>}
        <h1 className="breaks">{title}</h1>
      </div>
      <div className="row">{children}</div>
    </header>
  );
}

/** A list of names and values. Values of null or "" are omitted. */
export function Facts({ of }: { readonly of: readonly (readonly [name: string, value: ReactNode])[] }) {
  const shown = of.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return (
    <dl className="facts">
      {shown.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** A labeled number for the top of a page. */
export function Tile({
  name,
  figure,
  note,
}: {
  readonly name: string;
  readonly figure: ReactNode;
  readonly note?: ReactNode;
}) {
  return (
    <div className="tile">
      <span className="soft small">{name}</span>
      <span className="figure">{figure}</span>
      {note !== undefined && <span className="soft small">{note}</span>}
    </div>
  );
}
