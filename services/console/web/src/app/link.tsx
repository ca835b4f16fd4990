import type { MouseEvent, ReactNode } from "react";
import { goTo } from "./address.ts";

/** A link to a page. It opens in new tabs and windows like any link. */
export function PageLink({
  to,
  className,
  current,
  children,
}: {
  readonly to: string;
  readonly className?: string;
  readonly current?: boolean;
  readonly children: ReactNode;
}) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    goTo(to);
  };
  return (
    <a href={to} className={className} aria-current={current ? "page" : undefined} onClick={follow}>
      {children}
    </a>
  );
}

/** A link to a node's page. */
export function NodeLink({ id }: { readonly id: string }) {
  return <PageLink to={nodePath(id)}>{id}</PageLink>;
}

/** The path of a node's page. */
export function nodePath(id: string): string {
  return `/nodes/${encodeURIComponent(id)}`;
}
