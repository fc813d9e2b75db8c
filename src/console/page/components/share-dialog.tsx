/** Creates, lists and revokes share links of a dashboard, an insight or Overview. */

import { useState } from "preact/hooks";
import { request } from "../lib/api.ts";
import type { ShareLink } from "../lib/api-types.ts";
import { useResource } from "../lib/resource.ts";
import { inProject } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { Dialog } from "./dialog.tsx";
import { Field, Select } from "./fields.tsx";
import { Form } from "./form.tsx";
import { Badge, Button, CodeBlock, RelativeTime } from "./primitives.tsx";
import { ResourceList } from "./states.tsx";
import { toast, toastError } from "./toast.tsx";

const w = messages.share;
const dayMs = 86_400_000;

export function ShareDialog({
  item,
  name,
  onClose,
}: {
  item: { dashboard_id: number } | { insight_id: number } | { overview: object };
  name: string;
  onClose: () => void;
}) {
  const [[field, value]] = Object.entries(item) as [[string, unknown]];
  // All links of Overview are listed: their filters are part of them.
  const id = field === "overview" ? true : value;
  const links = useResource<{ results: ShareLink[] }>(`share links of ${field} ${id}`, (signal) =>
    request(inProject(`share_links/?${field}=${id}&limit=200`), { signal }),
  );
  const [label, setLabel] = useState("");
  const [password, setPassword] = useState("");
  const [days, setDays] = useState("");
  const [url, setUrl] = useState<string>();
  const create = async () => {
    const body = {
      ...item,
      name: label.trim(),
      password: password || null,
      expires_at: days === "" ? null : new Date(Date.now() + Number(days) * dayMs).toISOString(),
    };
    const created = await request<{ url: string }>(inProject("share_links/"), { method: "POST", body });
    setUrl(created.url);
    setLabel("");
    setPassword("");
    links.reload();
    return false;
  };
  const revoke = (link: ShareLink) =>
    request(inProject(`share_links/${link.id}/`), { method: "DELETE" }).then(() => {
      toast(w.revoked);
      links.reload();
    }, toastError);
  return (
    <Dialog title={w.title(name)} size="large" onClose={onClose}>
      <p>{w.help}</p>
      <ResourceList resource={links} rows={2} empty={<p class="muted">{w.empty}</p>}>
        {(link) => (
          <li key={link.id} class="row apart">
            <LinkFacts link={link} />
            <Button label={`${w.revoke} ${link.name || w.unnamed}`} onClick={() => void revoke(link)}>
              {w.revoke}
            </Button>
          </li>
        )}
      </ResourceList>
      {url !== undefined && (
        <div class="stack tight">
          <p>{w.created}</p>
          <CodeBlock label={w.link} code={url} />
        </div>
      )}
      <Form action={w.create} onSend={create}>
        {(errorOf) => (
          <div class="columns">
            <Field label={w.name} value={label} onInput={setLabel} error={errorOf("name")} />
            <Field
              label={w.password}
              type="password"
              autocomplete="new-password"
              value={password}
              onInput={setPassword}
              help={w.passwordHelp}
              error={errorOf("password")}
            />
            <Select label={w.expires} value={days} choices={w.expiries} onChange={setDays} />
          </div>
        )}
      </Form>
    </Dialog>
  );
}

function LinkFacts({ link }: { link: ShareLink }) {
  const isOver = link.expires_at !== null && Date.parse(link.expires_at) <= Date.now();
  return (
    <span>
      <b>{link.name || w.unnamed}</b> {link.has_password && <Badge>{w.hasPassword}</Badge>}{" "}
      {isOver && <Badge tone="warn">{w.ended}</Badge>}{" "}
      <span class="muted">
        {link.created_by && w.by(link.created_by.first_name || link.created_by.email)}
        {link.expires_at !== null && !isOver && (
          <>
            {` · ${w.ends} `}
            <RelativeTime at={link.expires_at} />
          </>
        )}
      </span>
    </span>
  );
}
