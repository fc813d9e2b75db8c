/** Roles and their members. */

import { Field, Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { Empty, ResourceList } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { RoleWithMemberships as Role } from "../../lib/api-types.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { isAdmin } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { useMembers } from "./team.tsx";

const w = messages.settings;
const path = "/api/organizations/@current/roles/";

export function RoleSettings() {
  const members = useMembers().data?.results ?? [];
  const disabledReason = !isAdmin.value && messages.frame.onlyAdmins;
  const roles = useResource<{ results: Role[] }>("roles with members", (signal) => request(path, { signal }));
  const added = useForm({ name: "" }, async ({ name }) => {
    if (disabledReason || name.trim() === "") return;
    await request(path, { method: "POST", body: { name: name.trim() } });
    added.set({ name: "" });
    roles.reload();
  });
  const change = (work: Promise<unknown>) => work.then(roles.reload, toastError);
  return (
    <section class="card stack">
      <h2>{w.roles}</h2>
      <p class="help">{w.rolesHelp}</p>
      <ResourceList
        resource={roles}
        rows={2}
        empty={<Empty title={w.rolesEmpty} icon="persons" command="flagkeep roles create NAME" />}
      >
        {(role) => (
          <li key={role.id} class="stack tight">
            <div class="row apart">
              <b>{role.name}</b>
              <Button
                kind="quiet"
                icon="trash"
                label={`${messages.frame.delete} ${role.name}`}
                disabledReason={disabledReason}
                onClick={() => void change(request(`${path}${role.id}/`, { method: "DELETE" }))}
              />
            </div>
            <div class="row">
              {role.role_memberships.map(({ id, user }) => (
                <Button
                  key={id}
                  icon="close"
                  disabledReason={disabledReason}
                  onClick={() =>
                    void change(request(`${path}${role.id}/role_memberships/${id}/`, { method: "DELETE" }))
                  }
                >
                  {user.first_name || user.email}
                </Button>
              ))}
              <Select
                label={`${w.addToRole}: ${role.name}`}
                isLabelHidden
                value=""
                disabledReason={disabledReason}
                choices={[
                  ["", w.addToRole],
                  ...members
                    .filter(
                      ({ user }) =>
                        !role.role_memberships.some(
                          (roleMembership) => roleMembership.user.uuid === user.uuid,
                        ),
                    )
                    .map(({ user }) => [user.uuid, user.first_name || user.email] as const),
                ]}
                onChange={(uuid) => {
                  if (uuid !== "") {
                    const body = { user_uuid: uuid };
                    void change(request(`${path}${role.id}/role_memberships/`, { method: "POST", body }));
                  }
                }}
              />
            </div>
          </li>
        )}
      </ResourceList>
      <form
        class="row bottom"
        onSubmit={(event) => {
          event.preventDefault();
          void added.submit();
        }}
      >
        <Field label={w.newRole} {...added.input("name")} error={added.error} isDisabled={!!disabledReason} />
        <Button type="submit" icon="plus" disabledReason={disabledReason}>
          {messages.frame.add}
        </Button>
      </form>
    </section>
  );
}
