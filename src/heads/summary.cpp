#include "heads/summary.h"

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "formats/parquet_table.h"
#include "heads/figures/role_figures.h"
#include "heads/figures/tracking_figures.h"
#include "run/manifest.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::uint64_t most_head_dimension = 1 << 16;

std::vector<std::string> role_names(const RoleDefinition& definition) {
  std::vector<std::string> names;
  for (std::size_t label = 0; label <= definition.roles.size(); ++label) names.emplace_back(definition.name_of(label));
  return names;
}

// Roles need attention.
bool has_roles(const RunTracks& tracks) {
  return roles_source(tracks).has("entropy_norm");
}

bool nothing_measured(const RunTracks& tracks) {
  return tracks.train.moments.empty() && tracks.probe.moments.empty();
}

// By the definition, of the source and up to the step that the file keeps.
RolesResult roles_as_kept(const fs::path& file, const RunTracks& tracks, const RunFacts& facts) {
  const ordered_json kept = parse_json(read_file(file));
  const ordered_json used = kept.is_object() ? kept.value("definition", ordered_json()) : ordered_json();
  if (!used.is_object() || !used.contains("id") || !used.contains("roles"))
    fail_input("{}: is damaged; 'headscope roles' writes it anew", file.string());
  const RoleDefinition definition =
      parse_role_definition(yaml_of({{"id", used["id"]}, {"roles", used["roles"]}}), file.string());
  const ordered_json until = kept.value("until_step", ordered_json());
  return roles_of(roles_source(tracks, kept.value("source", ordered_json()) == "train"), definition, facts.d_k,
                  until.is_number_integer() ? std::optional(until.get<std::int64_t>()) : std::nullopt);
}

// The folders below `run` with roles that were asked for after training, relative to it, in order.
std::vector<fs::path> more_roles(const fs::path& run) {
  std::vector<fs::path> places;
  if (!fs::is_directory(run / roles_folder)) return places;
  for (const auto& entry : fs::recursive_directory_iterator(run / roles_folder))
    if (entry.path().filename() == roles_name) places.push_back(entry.path().parent_path().lexically_relative(run));
  std::ranges::sort(places);
  return places;
}

std::string title_of(const RolesResult& roles, const RunFacts& facts) {
  std::string title = facts.title;
  if (roles.definition.id != default_role_definition().id) title += ", definition " + roles.definition.id;
  if (roles.source == "train") title += ", training batches";
  return roles.until ? title + fmt::format(", step {}", roles.moment.step) : title;
}

RoleMapData map_of(const RolesResult& roles, const RunFacts& facts) {
  RoleMapData map;
  map.title = title_of(roles, facts);
  map.roles = role_names(roles.definition);
  map.layers = static_cast<std::size_t>(roles.counts.layers);
  map.heads = static_cast<std::size_t>(roles.counts.query_heads);
  for (const HeadRole& head : roles.heads) {
    map.role_of.push_back(head.label);
    map.score_of.push_back(head.clarity);
  }
  return map;
}

RoleTimelineData timeline_of(const RolesResult& roles, const RunFacts& facts) {
  RoleTimelineData data;
  data.title = title_of(roles, facts);
  data.roles = role_names(roles.definition);
  data.share.resize(data.roles.size());
  data.moments = roles.timeline.moments;
  for (std::size_t i = 0; i < roles.timeline.moments.size(); ++i) {
    for (std::size_t role = 0; role < data.roles.size(); ++role)
      data.share[role].push_back(roles.timeline.shares[i][role]);
  }
  return data;
}

}  // namespace

HeadSummary summarise(const RunTracks& tracks, const RunFacts& facts) {
  if (nothing_measured(tracks)) return {};
  HeadSummary summary{find(tracks), {}};
  if (has_roles(tracks)) summary.roles = roles_of(roles_source(tracks), default_role_definition(), facts.d_k);
  return summary;
}

void write_summary(const HeadSummary& summary, const RunFacts& facts, const WriteFile& write) {
  if (summary.findings) {
    write("summary.md", to_markdown(*summary.findings, facts.title));
    write("summary.json", json_text(to_json(*summary.findings)));
  }
  if (summary.roles) write_roles(*summary.roles, write);
}

void write_roles(const RolesResult& roles, const WriteFile& write) {
  write("roles.parquet", to_parquet(roles_table(roles)));
  write("role_timeline.parquet", to_parquet(role_timeline_table(roles)));
  write("role_transitions.parquet", to_parquet(role_transitions_table(roles)));
  write(roles_name, json_text(to_json(roles)));
}

std::vector<fs::path> draw_summary(const RunTracks& tracks, const HeadSummary& summary, const RunFacts& facts,
                                   const fs::path& out, const std::string& theme) {
  if (nothing_measured(tracks)) return {};
  // The summary speaks of the probes; curves show the source with more moments.
  const bool of_training = !tracks.probe.moments.empty() && &tracks.finest() == &tracks.train;
  const std::string title = facts.title + (of_training ? ", training batches" : "");
  auto files = draw(tracking_figures({title, &tracks}), out / plots_name, theme_named(theme)).files;
  if (!summary.roles) return files;
  const std::vector<fs::path> more = draw_roles(*summary.roles, facts, out, theme);
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

std::vector<fs::path> draw_roles(const RolesResult& roles, const RunFacts& facts, const fs::path& out,
                                 const std::string& theme) {
  const std::vector<Figure> figures = {role_map_figure(map_of(roles, facts)),
                                       role_timeline_figure(timeline_of(roles, facts))};
  return draw(figures, out / plots_name, theme_named(theme)).files;
}

RunFacts read_facts(const fs::path& run) {
  const fs::path around = run_around(run);
  if (around.empty()) return {};
  const ordered_json manifest = read_manifest(around), config = manifest.value("config", ordered_json::object());
  const ordered_json model = config.value("model", ordered_json::object());
  const ordered_json d_k = model.is_object() ? model.value("d_k", ordered_json()) : ordered_json();
  return {text_at(manifest, "title", run_title(run, text_at(config, "preset"))),
          d_k.is_number_unsigned() && d_k.get<std::uint64_t>() <= most_head_dimension ? d_k.get<std::int64_t>() : 0};
}

std::optional<RolesResult> read_roles(const RunTracks& tracks, const RunFacts& facts, const fs::path& run) {
  if (fs::exists(run / roles_name)) return roles_as_kept(run / roles_name, tracks, facts);
  if (nothing_measured(tracks) || !has_roles(tracks)) return std::nullopt;
  return roles_of(roles_source(tracks), default_role_definition(), facts.d_k);
}

HeadSummary read_summary(const RunTracks& tracks, const RunFacts& facts, const fs::path& run) {
  if (!fs::exists(run / roles_name)) return summarise(tracks, facts);
  return {find(tracks), read_roles(tracks, facts, run)};
}

std::vector<fs::path> draw_tracked_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  theme_named(theme);  // an unknown name is refused before anything is read
  const RunTracks tracks = read_tracks(run);
  const RunFacts facts = read_facts(run);
  std::vector<fs::path> files = draw_summary(tracks, read_summary(tracks, facts, run), facts, out, theme);
  for (const fs::path& place : more_roles(run)) {
    fs::create_directories(out / place);
    const auto more = draw_roles(roles_as_kept(run / place / roles_name, tracks, facts), facts, out / place, theme);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

}  // namespace headscope
