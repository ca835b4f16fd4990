import { type KeyboardEvent, useEffect, useRef } from "react";

/** Tabs; arrow keys go from one to the next. */
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
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a narrow screen may not show the tab that was chosen.
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [chosen]);
  return (
    <div className="tabs" role="tablist" tabIndex={-1} onKeyDown={press} ref={list}>
      {tabs.map(([name, title]) => (
        <button
          key={name}
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
