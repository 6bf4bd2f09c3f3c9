#include "heads/roles/run.h"

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "figures/theme.h"
#include "formats/part_table.h"
#include "heads/ranking.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

RoleDefinition definition_of(const RolesJob& job) {
  return job.definition.empty() ? default_role_definition() : read_role_definition(job.definition);
}

RolesResult roles_by(const RolesJob& job, const RunTracks& tracks, const RoleDefinition& definition,
                     const RunFacts& facts) {
  return roles_of(roles_source(tracks, job.source == "train"), definition, facts.d_k, job.step);
}

// Tables, JSON and figures.
void write_all(const RolesResult& roles, const RolesJob& job, const RunFacts& facts, const fs::path& place) {
  write_roles(roles, [&](const fs::path& name, std::string_view content) { write_file(place / name, content); });
  draw_roles(roles, facts, place, job.theme);
}

void copy_table(const fs::path& from, const fs::path& to) {
  if (!fs::exists(part_folder(from))) return;
  std::error_code error;
  fs::create_directory(to, error);
  for (const fs::path& part : part_files(part_folder(from)))
    if (!error) fs::copy_file(part, to / part.filename(), error);
  if (error) fail_runtime("cannot copy {} to {}: {}", from.string(), to.string(), error.message());
}

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

// Of a run, into another folder. Its tables come along: the folder can be drawn again and checked.
RolesOutcome roles_elsewhere(const RolesJob& job, const RoleDefinition& definition) {
  const RunTracks tracks = read_tracks(job.place);
  const RunFacts facts = read_facts(job.place);
  const BatchShape shape = read_batch_shape(job.place);
  const std::int64_t batch = shape.seq_len > 0 ? shape.tokens / shape.seq_len : 0;
  const ordered_json config = {
      {"model", {{"d_k", facts.d_k}}}, {"train", {{"seq_len", shape.seq_len}, {"batch", batch}}},
      {"run", job.place.string()},     {"source", job.source},
      {"definition", definition.id},   {"step", job.step ? ordered_json(*job.step) : ordered_json()}};
  RunFolder folder(job.folder, {roles_command, config, {{"title", facts.title}}});
  return folder.live([&] {
    for (const char* table : {heads_table, gamma_table}) copy_table(job.place / table, folder.place() / table);
    RolesOutcome outcome{folder.path(), roles_by(job, tracks, definition, facts)};
    write_all(outcome.roles, job, facts, folder.place());
    folder.finish(RunStatus::complete, {{"definition_hash", definition.hash()}});
    return outcome;
  });
}

// Labels of different thresholds must not carry the same name.
void refuse_another_definition(const fs::path& place, const RoleDefinition& definition) {
  const fs::path file = place / roles_name;
  if (!fs::exists(file)) return;
  const ordered_json kept = parse_json(read_file(file)),
                     used = kept.is_object() ? kept.value("definition", kept) : kept;
  if (text_at(used, "hash") != definition.hash())
    fail_input(
        "{}: holds roles of another definition with the id '{}'; choose another id, or replace them with "
        "--overwrite",
        place.string(), definition.id);
}

// Of a run, into the run itself.
RolesOutcome roles_within(const RolesJob& job, const RoleDefinition& definition) {
  const RunTracks tracks = read_tracks(job.place);
  const RunFacts facts = read_facts(job.place);
  RolesResult roles = roles_by(job, tracks, definition, facts);
  // By the step that was measured: the one asked for may lie behind it.
  const fs::path inside =
      roles_place(definition.id, job.source, job.step ? std::optional(roles.moment.step) : std::nullopt);
  if (!inside.empty() && !job.folder.overwrite) refuse_another_definition(job.place / inside, definition);
  RunFolder run = RunFolder::add_to(job.place);
  return run.live([&] {
    fs::create_directories(run.place() / inside);
    RolesOutcome outcome{inside.empty() ? job.place : job.place / inside, std::move(roles)};
    write_all(outcome.roles, job, facts, run.place() / inside);
    run.finish();
    return outcome;
  });
}

RolesOutcome roles_of_checkpoint(const RolesJob& job, const RoleDefinition& definition, const Inspect& inspect) {
  const InspectJob inspection{
      {.checkpoints = {job.place.string()}, .metrics = "all", .device = job.device, .changes = job.changes},
      job.folder};
  check_out(job.folder, inspect_command, RunWrites::at_the_end);  // before the model is read
  RolesOutcome outcome{job.folder.out, {}};
  inspect(inspection, [&](const Inspection& measured, const RunFacts& facts, const fs::path& place) {
    outcome.roles = roles_by(job, measured.tracks, definition, facts);
    write_all(outcome.roles, job, facts, place);
  });
  return outcome;
}

}  // namespace

fs::path roles_place(const std::string& definition, const std::string& source, std::optional<std::int64_t> step) {
  if (definition == default_role_definition().id && source == "probe" && !step) return {};
  fs::path place = fs::path(roles_folder) / definition;
  if (source == "train") place /= source;
  return step ? place / fmt::format("step-{}", *step) : place;
}

bool is_tracked_run(const fs::path& place) {
  return fs::exists(part_folder(place / heads_table));
}

RolesOutcome find_roles(const RolesJob& job, const Inspect& inspect) {
  theme_named(job.theme);
  if (job.source != "probe" && job.source != "train") fail_input("--source {}: expected probe or train", job.source);
  const RoleDefinition definition = definition_of(job);
  if (is_tracked_run(job.place)) {
    if (!job.changes.empty())
      fail_input("{}: a run was measured on its own data; give one of its checkpoints", job.changes.front().where);
    if (!job.folder.out.empty() && !same_folder(job.place, job.folder.out)) return roles_elsewhere(job, definition);
    return roles_within(job, definition);
  }
  if (fs::exists(job.place / manifest_name))
    fail_input("{}: has no heads.parquet; give a run of 'headscope train' or 'headscope inspect', or a checkpoint",
               job.place.string());
  if (job.step) fail_input("--step {}: a checkpoint is one moment; give its run", *job.step);
  return roles_of_checkpoint(job, definition, inspect);
}

}  // namespace headscope
