/** Edit access to a flag. */

import { useState } from "preact/hooks";
import { Select } from "../../components/fields.tsx";
import { Button, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { FeatureFlagRoleAccess as RoleAccess } from "../../lib/api-types.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import type { Flag } from "../../model/flags.ts";

const w = messages.flag.access;

export function Access({ flag }: { flag: Flag }) {
  const path = `feature_flags/${flag.id}/role_access/`;
  const sent = useResource<{ results: RoleAccess[] }>(`access ${flag.id}`, (signal) =>
    request(inProject(path), { signal }),
  );
  const roles = useResource<{ results: { id: string; name: string }[] }>("roles", (signal) =>
    request("/api/organizations/@current/roles/", { signal }),
  );
  const [chosen, setChosen] = useState("");
  const mayDecide = flag.user_access_level === "manager";
  const disabledReason = !mayDecide && messages.frame.onlyAdmins;
  const change = (work: Promise<unknown>) => work.then(() => sent.reload(), toastError);
  return (
    <section class="card stack">
      <p>{w.yours(w.levels[String(flag.user_access_level ?? "editor")] ?? "")}</p>
      <h2>{w.roles}</h2>
      <p class="help">{w.help}</p>
      <Content resource={sent}>
        {({ results }) => {
          const free = (roles.data?.results ?? []).filter(
            ({ id }) => !results.some(({ role }) => role.id === id),
          );
          return (
            <>
              {results.length === 0 ? (
                <Empty title={w.none} icon="persons">
                  {roles.data?.results.length === 0 && (
                    <p class="muted">
                      <a href={to("settings", { tab: "roles" })}>{w.noRoles}</a>
                    </p>
                  )}
                </Empty>
              ) : (
                <ul class="lines">
                  {results.map(({ id, role, added_at: at }) => (
                    <li key={id} class="row apart">
                      <span>
                        {role.name}{" "}
                        <span class="muted">
                          <RelativeTime at={at} />
                        </span>
                      </span>
                      <Button
                        kind="quiet"
                        icon="trash"
                        label={w.remove(role.name)}
                        disabledReason={disabledReason}
                        onClick={() => void change(request(inProject(`${path}${id}/`), { method: "DELETE" }))}
                      />
                    </li>
                  ))}
                </ul>
              )}
              {free.length > 0 && (
                <div class="row">
                  <Select
                    label={w.role}
                    isLabelHidden
                    value={chosen}
                    disabledReason={disabledReason}
                    choices={[["", w.role], ...free.map(({ id, name }) => [id, name] as const)]}
                    onChange={setChosen}
                  />
                  <Button
                    icon="plus"
                    disabledReason={disabledReason}
                    isDisabled={chosen === ""}
                    onClick={() =>
                      void change(request(inProject(path), { method: "POST", body: { role_id: chosen } }))
                    }
                  >
                    {w.add}
                  </Button>
                </div>
              )}
            </>
          );
        }}
      </Content>
    </section>
  );
}
