import { useState } from "react";
import { joinCommand, joinServer, PLATFORMS, type Platform } from "../../state/cli-command.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { JoinedNodes } from "./joined-nodes.tsx";

const TITLES: Readonly<Record<Platform, string>> = {
  shell: "In a shell",
  service: "As a service (Debian)",
  container: "As a container",
};

/** A token that was just made: its text, this once, the command for a machine, and the machines as they come. */
export function TokenMade({
  id,
  text,
  onDone,
}: {
  readonly id: string;
  readonly text: string;
  readonly onDone: () => void;
}) {
  const [platform, setPlatform] = useState<Platform>("shell");
  const { server, isLoopback } = joinServer(window.location);
  return (
    <>
      <Panel title={`Join token ${id}`} actions={<Button onClick={onDone}>Done</Button>}>
        <div className="stack">
          <Notice tone="warn">The token is shown now and never again.</Notice>
          <Tabs tabs={PLATFORMS.map((one) => [one, TITLES[one]] as const)} chosen={platform} onChoose={setPlatform} />
          <CopyCommand text={joinCommand(platform, server, text)} label={TITLES[platform]} />
          {isLoopback && (
            <p className="soft small">Another machine needs an address in place of {server} that leads here.</p>
          )}
          {window.location.protocol === "https:" && (
            <p className="soft small">
              Where the certificate is of an authority of its own, <code>rollcall token create</code> prints the command
              with that authority's fingerprint.
            </p>
          )}
        </div>
      </Panel>
      <JoinedNodes tokenId={id} />
    </>
  );
}
