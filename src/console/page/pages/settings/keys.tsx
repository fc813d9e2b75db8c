/** Personal keys: created from a preset or by scope, shown once, revoked. */

import { useState } from "preact/hooks";
import { routeScopes } from "../../../../accounts/route-scopes.ts";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Segments, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Badge, Button, CodeBlock, Day, RelativeTime } from "../../components/primitives.tsx";
import { Empty, ResourceList } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { PersonalAPIKeyWithValue as Key } from "../../lib/api-types.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { messages } from "../../messages/index.ts";

const w = messages.settings;

const presets = {
  read: ["feature_flag:read"],
  flags: ["feature_flag:read", "feature_flag:write", "cohort:read"],
  analytics: routeScopes.filter((scope) => scope.endsWith(":read")),
  all: ["*"],
} as const satisfies Record<keyof typeof w.presets, readonly string[]>;
type Preset = keyof typeof presets;

/** Actions of each resource that some route requires. */
const actionsByResource = Map.groupBy(routeScopes, (scope) => scope.split(":")[0]!);

const accessNames = ["none", "read", "write"] as const;
type AccessName = (typeof accessNames)[number];

/** The scopes of a resource; writing includes reading. */
function getScopes(resource: string, access: AccessName): string[] {
  const all: readonly string[] = actionsByResource.get(resource) ?? [];
  const wanted = accessNames.slice(1, accessNames.indexOf(access) + 1);
  return all.filter((scope) => wanted.some((action) => scope === `${resource}:${action}`));
}

const getAccess = (resource: string, scopes: readonly string[]): AccessName =>
  scopes.includes(`${resource}:write`) ? "write" : scopes.includes(`${resource}:read`) ? "read" : "none";

/** The preset that has exactly these scopes. */
const getPreset = (scopes: readonly string[]): Preset | "custom" =>
  (Object.keys(presets) as Preset[]).find(
    (name) =>
      presets[name].length === scopes.length && presets[name].every((scope) => scopes.includes(scope)),
  ) ?? "custom";

export function PersonalKeys() {
  const keys = useResource<Key[]>("keys", (signal) => request("/api/personal_api_keys/", { signal }));
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<Key>();
  const [requested, setRequested] = useState<{ key: Key; isRoll: boolean }>();
  const done = (key: Key) => {
    setCreating(false);
    setShown(key);
    keys.reload();
  };
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.keys}</h2>
        <Button icon="plus" onClick={() => setCreating(true)}>
          {w.newKey}
        </Button>
      </div>
      <p class="help">{w.keysHelp}</p>
      <ResourceList
        resource={keys}
        rows={2}
        empty={<Empty title={w.keysEmpty} icon="key" command="flagkeep keys create" />}
      >
        {(key) => (
          <li key={key.id} class="row apart">
            <KeyFacts item={key} />
            <span class="row">
              <Button onClick={() => setRequested({ key, isRoll: true })}>{w.roll}</Button>
              <Button kind="danger" onClick={() => setRequested({ key, isRoll: false })}>
                {w.revoke}
              </Button>
            </span>
          </li>
        )}
      </ResourceList>
      {isCreating && <NewKey onClose={() => setCreating(false)} onCreated={done} />}
      {shown?.value && (
        <Dialog title={w.keyCreated} onClose={() => setShown(undefined)}>
          <p>{w.keyCreatedHelp}</p>
          <CodeBlock label={shown.label} code={shown.value} />
        </Dialog>
      )}
      {requested && (
        <ConfirmDialog
          title={requested.isRoll ? w.roll : w.revoke}
          text={(requested.isRoll ? w.rollText : w.revokeText)(requested.key.label)}
          action={requested.isRoll ? w.roll : w.revoke}
          onClose={() => setRequested(undefined)}
          onYes={() => {
            const path = `/api/personal_api_keys/${requested.key.id}/`;
            const work = requested.isRoll
              ? request<Key>(`${path}roll/`, { method: "POST" }).then(done)
              : request(path, { method: "DELETE" }).then(keys.reload);
            work.catch(toastError);
          }}
        />
      )}
    </section>
  );
}

function KeyFacts({ item: key }: { item: Key }) {
  return (
    <span>
      <b>{key.label}</b> <code>{key.mask_value}</code>{" "}
      {key.scopes.slice(0, 3).map((scope) => (
        <Badge key={scope}>{scope}</Badge>
      ))}{" "}
      {key.scopes.length > 3 && <Badge>+{key.scopes.length - 3}</Badge>}
      <span class="sub">
        {key.last_used_at ? w.lastUsed : w.notUsed} <RelativeTime at={key.last_used_at} fallback="" /> ·{" "}
        {key.expires_at ? (
          <>
            {w.expires.toLowerCase()} <Day at={key.expires_at} />
          </>
        ) : (
          w.neverExpires
        )}
      </span>
    </span>
  );
}

/** A member's keys for admins, with scopes and last use. They can be revoked. */
export function MemberKeys({ uuid, name, onClose }: { uuid: string; name: string; onClose: () => void }) {
  const path = `/api/organizations/@current/members/${uuid}/personal_api_keys/`;
  const keys = useResource<Key[]>(`keys of ${uuid}`, (signal) => request(path, { signal }));
  const [revoked, setRevoked] = useState<Key>();
  return (
    <Dialog title={w.keysOf(name)} size="large" onClose={onClose}>
      <ResourceList resource={keys} rows={2} empty={<p class="muted">{w.keysEmpty}</p>}>
        {(key) => (
          <li key={key.id} class="row apart">
            <KeyFacts item={key} />
            <Button kind="danger" onClick={() => setRevoked(key)}>
              {w.revoke}
            </Button>
          </li>
        )}
      </ResourceList>
      {revoked && (
        <ConfirmDialog
          title={w.revoke}
          text={w.revokeText(revoked.label)}
          action={w.revoke}
          onClose={() => setRevoked(undefined)}
          onYes={() => {
            request(`${path}${revoked.id}/`, { method: "DELETE" }).then(keys.reload, toastError);
          }}
        />
      )}
    </Dialog>
  );
}

function NewKey({ onClose, onCreated }: { onClose: () => void; onCreated: (key: Key) => void }) {
  const form = useForm(
    { label: "", scopes: presets.flags as readonly string[], expires_at: "" },
    async ({ label, scopes, expires_at: expires }) => {
      const body = {
        label: label.trim(),
        scopes,
        expires_at: expires === "" ? null : new Date(`${expires}T23:59:59`).toISOString(),
      };
      onCreated(await request<Key>("/api/personal_api_keys/", { method: "POST", body }));
    },
  );
  const { scopes } = form.values;
  const setScopes = (changed: readonly string[]) => form.set({ scopes: changed });
  return (
    <FormDialog
      title={w.newKey}
      form={form}
      action={w.createKey}
      disabledReason={scopes.length === 0 && w.noScopes}
      onClose={onClose}
    >
      <Field label={w.keyLabel} {...form.input("label")} isRequired autofocus />
      <Field label={w.expires} type="date" {...form.input("expires_at")} />
      <Select
        label={w.presetLabel}
        value={getPreset(scopes)}
        choices={[
          ...(Object.entries(w.presets) as [Preset, string][]),
          ...(getPreset(scopes) === "custom" ? [["custom", w.customPreset] as const] : []),
        ]}
        onChange={(name) => name !== "custom" && setScopes(presets[name])}
      />
      {!scopes.includes("*") && (
        <fieldset class="scopes">
          <legend class="label">{w.scopes}</legend>
          {[...actionsByResource].map(([resource, all]) => (
            <div key={resource} class="row apart scope">
              <span aria-hidden="true">{resource.replaceAll("_", " ")}</span>
              <Segments
                label={resource.replaceAll("_", " ")}
                value={getAccess(resource, scopes)}
                choices={accessNames
                  .filter((access) => access === "none" || all.some((scope) => scope.endsWith(`:${access}`)))
                  .map((access) => [access, w.access[access]] as const)}
                onChange={(access) =>
                  setScopes([
                    ...scopes.filter((scope) => !scope.startsWith(`${resource}:`)),
                    ...getScopes(resource, access),
                  ])
                }
              />
            </div>
          ))}
        </fieldset>
      )}
    </FormDialog>
  );
}
