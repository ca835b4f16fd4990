import * as Radix from "@radix-ui/react-dropdown-menu";
import type { ReactNode } from "react";

/** An item of a menu; null is a separator. */
export type MenuItem = {
  readonly label: string;
  readonly hint?: string;
  readonly danger?: boolean;
  readonly checked?: boolean;
  readonly onSelect: () => void;
} | null;

/**
 * A button that opens a menu. A menu with `checked` items stays open, so that the user can select
 * several.
 */
export function Menu({
  label,
  children,
  items,
  look = "",
}: {
  readonly label?: string;
  readonly children: ReactNode;
  readonly items: readonly MenuItem[];
  readonly look?: string;
}) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger className={`button ${look}`} aria-label={label}>
        {children}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" sideOffset={4} align="start" collisionPadding={8}>
          {items.map((item, at) => (item === null ? separator(at) : line(item)))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function separator(at: number): ReactNode {
  return <Radix.Separator key={`line-${at}`} className="menu-line" />;
}

function line(item: Exclude<MenuItem, null>): ReactNode {
  const className = item.danger ? "menu-item danger" : "menu-item";
  if (item.checked === undefined) {
    return (
      <Radix.Item key={item.label} className={className} onSelect={item.onSelect}>
        <span>{item.label}</span>
        {item.hint !== undefined && <span className="soft">{item.hint}</span>}
      </Radix.Item>
    );
  }
  const choose = (event: Event) => {
    event.preventDefault();
    item.onSelect();
  };
  return (
    <Radix.CheckboxItem key={item.label} className={className} checked={item.checked} onSelect={choose}>
      <span>
        {item.checked ? "☑" : "☐"} {item.label}
      </span>
      {item.hint !== undefined && <span className="soft number">{item.hint}</span>}
    </Radix.CheckboxItem>
  );
}
