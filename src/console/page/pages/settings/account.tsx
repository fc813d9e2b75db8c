/** Account: name, start page, password, sessions. */

import { useState } from "preact/hooks";
import { Field, Select } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { Badge, Button, RelativeTime } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { loadSession, me, type SessionFacts } from "../../lib/session.ts";
import { startPageKey } from "../../lib/start-page.ts";
import { readPreference, savePreference } from "../../lib/storage.ts";
import { messages } from "../../messages/index.ts";

const w = messages.settings;

export function AccountSettings() {
  const unsaved = useUnsavedFields("account");
  const [firstName, setFirstName] = unsaved.field("firstName", me.value?.first_name ?? "");
  const [lastName, setLastName] = unsaved.field("lastName", me.value?.last_name ?? "");
  const [start, setStart] = useState(readPreference(startPageKey) ?? "");
  const [current, setCurrent] = useState("");
  const [wanted, setWanted] = useState("");
  return (
    <div class="stack">
      <section class="card">
        <h2>{me.value?.email}</h2>
        <Form
          unsaved={unsaved}
          onSend={async () => {
            const body = { first_name: firstName, last_name: lastName };
            await request("/api/users/@me/", { method: "PATCH", body });
            await loadSession();
          }}
        >
          <div class="columns">
            <Field label={w.firstName} value={firstName} onInput={setFirstName} autocomplete="given-name" />
            <Field label={w.lastName} value={lastName} onInput={setLastName} autocomplete="family-name" />
          </div>
        </Form>
      </section>
      <section class="card">
        <Select
          label={messages.frame.startPage}
          value={start}
          choices={Object.entries(messages.frame.startPages)}
          onChange={(name) => {
            setStart(name);
            savePreference(startPageKey, name || null);
          }}
        />
      </section>
      <section class="card">
        <h2>{w.password}</h2>
        <Form
          action={w.changePassword}
          done={w.passwordChanged}
          onSend={async () => {
            const body = { current_password: current, password: wanted };
            await request("/api/session/password/", { method: "POST", body });
            setCurrent("");
            setWanted("");
          }}
        >
          {(errorOf) => (
            <div class="columns">
              <Field
                label={w.currentPassword}
                type="password"
                autocomplete="current-password"
                value={current}
                onInput={setCurrent}
                error={errorOf("current_password")}
                isRequired
              />
              <Field
                label={w.newPassword}
                type="password"
                autocomplete="new-password"
                value={wanted}
                onInput={setWanted}
                help={messages.signing.passwordHelp}
                error={errorOf("password")}
                isRequired
              />
            </div>
          )}
        </Form>
      </section>
      <Sessions />
    </div>
  );
}

function Sessions() {
  const sessions = useResource<SessionFacts[]>("sessions", (signal) => request("/api/sessions/", { signal }));
  const end = (path: string) => {
    request(path, { method: "DELETE" }).then(sessions.reload, toastError);
  };
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.sessions}</h2>
        <Button onClick={() => end("/api/sessions/")}>{w.endOtherSessions}</Button>
      </div>
      <Content resource={sessions} rows={2}>
        {(found) => (
          <ul class="lines">
            {found.map((session) => (
              <li key={session.id} class="row apart">
                <span>
                  {session.address} <span class="muted">{browserName(session.browser)}</span>{" "}
                  <span class="muted">
                    · {w.lastSeen} <RelativeTime at={session.last_seen_at} />
                  </span>{" "}
                  {session.is_current && <Badge tone="good">{w.thisSession}</Badge>}
                </span>
                {!session.is_current && (
                  <Button onClick={() => end(`/api/sessions/${session.id}/`)}>{w.end}</Button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Content>
    </section>
  );
}

/** "Firefox on Linux", from the User-Agent. */
function browserName(agent: string): string {
  const [, name] =
    /(Firefox|Edg|OPR|HeadlessChrome|Chrome|Safari)\//.exec(agent.replace(/Version\S+ /, "")) ?? [];
  const [, system] = /(Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux)/.exec(agent) ?? [];
  if (name === undefined) return agent.slice(0, 60);
  const known: Record<string, string> = { Edg: "Edge", OPR: "Opera", HeadlessChrome: "Chrome" };
  return w.browserOn(known[name] ?? name, system);
}
