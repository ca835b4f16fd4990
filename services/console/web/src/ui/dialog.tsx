import * as Radix from "@radix-ui/react-dialog";
import type { ReactNode } from "react";

/** A modal dialog: it takes the focus, returns it, and closes on Escape. */
export function Dialog({
  title,
  onClose,
  wide,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly wide?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <Radix.Root open onOpenChange={(open) => open || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="veil" />
        <Radix.Content className={wide ? "dialog wide stack" : "dialog stack"} aria-describedby={undefined}>
          <Radix.Title>{title}</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
