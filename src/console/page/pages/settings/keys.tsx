/** Personal keys: made with a preset or scope by scope, shown once, revoked. */

import { useState } from "preact/hooks";
import { routeScopes } from "../../../../accounts/route-scopes.ts";
import { ask, wordsOf } from "../../lib/api.ts";
import { date } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { Badge, Button, CodeBlock, When } from "../../parts/basics.tsx";
import { Question } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Checkbox, Field, Select } from "../../parts/fields.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { complain } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.settings;

interface Key {
  id: string;
  label: string;
  value: string | null;
  mask_value: string;
  scopes: string[];
  last_used_at: string | null;
  expires_at: string | null;
}

const presets = {
  read: ["feature_flag:read"],
  flags: ["feature_flag:write", "cohort:read"],
  analytics: routeScopes.filter((scope) => scope.endsWith(":read")),
  all: ["*"],
} as const satisfies Record<keyof typeof w.presets, readonly string[]>;
type Preset = keyof typeof presets;

export function PersonalKeys() {
  const keys = useResource<Key[]>("keys", (signal) => ask("/api/personal_api_keys/", { signal }));
  const [isMaking, setMaking] = useState(false);
  const [shown, setShown] = useState<Key>();
  const [asked, setAsked] = useState<{ key: Key; isRoll: boolean }>();
  const done = (key: Key) => {
    setMaking(false);
    setShown(key);
    keys.reload();
  };
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.keys}</h2>
        <Button icon="plus" onClick={() => setMaking(true)}>
          {w.newKey}
        </Button>
      </div>
      <p class="help">{w.keysHelp}</p>
      <Content of={keys} rows={2}>
        {(found) =>
          found.length === 0 ? (
            <Empty title={w.keysEmpty} icon="key" command="flagkeep keys create" />
          ) : (
            <ul class="lines">
              {found.map((key) => (
                <li key={key.id} class="row apart">
                  <KeyFacts of={key} />
                  <span class="row">
                    <Button onClick={() => setAsked({ key, isRoll: true })}>{w.roll}</Button>
                    <Button kind="danger" onClick={() => setAsked({ key, isRoll: false })}>
                      {w.revoke}
                    </Button>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Content>
      {isMaking && <NewKey onClose={() => setMaking(false)} onMade={done} />}
      {shown?.value && (
        <Dialog title={w.keyMade} onClose={() => setShown(undefined)}>
          <p>{w.keyMadeHelp}</p>
          <CodeBlock label={shown.label} code={shown.value} />
        </Dialog>
      )}
      {asked && (
        <Question
          title={asked.isRoll ? w.roll : w.revoke}
          text={(asked.isRoll ? w.rollText : w.revokeText)(asked.key.label)}
          action={asked.isRoll ? w.roll : w.revoke}
          onClose={() => setAsked(undefined)}
          onYes={() => {
            const path = `/api/personal_api_keys/${asked.key.id}/`;
            const work = asked.isRoll
              ? ask<Key>(`${path}roll/`, { method: "POST" }).then(done)
              : ask(path, { method: "DELETE" }).then(keys.reload);
            work.catch((error) => complain(wordsOf(error)));
          }}
        />
      )}
    </section>
  );
}

function KeyFacts({ of: key }: { of: Key }) {
  return (
    <span>
      <b>{key.label}</b> <code>{key.mask_value}</code>{" "}
      {key.scopes.slice(0, 3).map((scope) => (
        <Badge key={scope}>{scope}</Badge>
      ))}{" "}
      {key.scopes.length > 3 && <Badge>+{key.scopes.length - 3}</Badge>}
      <span class="sub">
        {key.last_used_at ? w.lastUsed : w.notUsed} <When at={key.last_used_at} fallback="" /> ·{" "}
        {w.expires.toLowerCase()} {key.expires_at ? date(key.expires_at) : w.never}
      </span>
    </span>
  );
}

/** Keys of a member, for admins: what they may and when they were used last. They can be revoked. */
export function MemberKeys({ uuid, name, onClose }: { uuid: string; name: string; onClose: () => void }) {
  const path = `/api/organizations/@current/members/${uuid}/personal_api_keys/`;
  const keys = useResource<Key[]>(`keys of ${uuid}`, (signal) => ask(path, { signal }));
  const [revoked, setRevoked] = useState<Key>();
  return (
    <Dialog title={w.keysOf(name)} size="large" onClose={onClose}>
      <Content of={keys} rows={2}>
        {(found) =>
          found.length === 0 ? (
            <p class="muted">{w.keysEmpty}</p>
          ) : (
            <ul class="lines">
              {found.map((key) => (
                <li key={key.id} class="row apart">
                  <KeyFacts of={key} />
                  <Button kind="danger" onClick={() => setRevoked(key)}>
                    {w.revoke}
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </Content>
      {revoked && (
        <Question
          title={w.revoke}
          text={w.revokeText(revoked.label)}
          action={w.revoke}
          onClose={() => setRevoked(undefined)}
          onYes={() => {
            ask(`${path}${revoked.id}/`, { method: "DELETE" }).then(keys.reload, (error) =>
              complain(wordsOf(error)),
            );
          }}
        />
      )}
    </Dialog>
  );
}

function NewKey({ onClose, onMade }: { onClose: () => void; onMade: (key: Key) => void }) {
  const [label, setLabel] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(presets.flags);
  const [preset, setPreset] = useState<Preset>("flags");
  const [expires, setExpires] = useState("");
  const [error, setError] = useState<string>();
  const make = async () => {
    try {
      const body = {
        ...{ label: label.trim(), scopes },
        expires_at: expires === "" ? null : new Date(`${expires}T23:59:59`).toISOString(),
      };
      onMade(await ask<Key>("/api/personal_api_keys/", { method: "POST", body }));
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  return (
    <Dialog
      title={w.newKey}
      onClose={onClose}
      onSubmit={make}
      actions={
        <Button kind="main" type="submit" refusal={scopes.length === 0 && w.noScopes}>
          {w.makeKey}
        </Button>
      }
    >
      <Field label={w.keyLabel} value={label} onInput={setLabel} isRequired autofocus />
      <Field label={w.expires} type="date" value={expires} onInput={setExpires} />
      <Select
        label={w.presetLabel}
        value={preset}
        choices={Object.entries(w.presets) as [Preset, string][]}
        onChange={(name) => {
          setPreset(name);
          setScopes(presets[name]);
        }}
      />
      {!scopes.includes("*") && (
        <fieldset class="scopes">
          <legend>{w.scopes}</legend>
          {routeScopes.map((scope) => (
            <Checkbox
              key={scope}
              label={scope}
              isOn={scopes.includes(scope)}
              onChange={(on) =>
                setScopes(on ? [...scopes, scope] : scopes.filter((other) => other !== scope))
              }
            />
          ))}
        </fieldset>
      )}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </Dialog>
  );
}
