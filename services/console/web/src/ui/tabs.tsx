import type { KeyboardEvent } from "react";

/** Tabs; arrow keys move between them. */
export function Tabs<T extends string>({
  tabs,
  chosen,
  onChoose,
}: {
  readonly tabs: readonly (readonly [name: T, title: string])[];
  readonly chosen: T;
  readonly onChoose: (name: T) => void;
}) {
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    const at = tabs.findIndex(([name]) => name === chosen);
    const next = (at + by + tabs.length) % tabs.length;
    onChoose(tabs[next]?.[0] ?? chosen);
    (event.currentTarget.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div className="tabs" role="tablist" tabIndex={-1} onKeyDown={press}>
      {tabs.map(([name, title]) => (
        <button
          key={name}
          ref={name === chosen ? scrollTo : null}
          type="button"
          role="tab"
          aria-selected={name === chosen}
          tabIndex={name === chosen ? 0 : -1}
          onClick={() => onChoose(name)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

/** Show the chosen tab, which a narrow screen may hide. */
function scrollTo(tab: HTMLElement | null): void {
  tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
}
