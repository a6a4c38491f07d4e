-- Stores tasks.
-- ARGV: 1 generation, 2 producer, 3 number, 4 channel, 5 group; then for each task: key, lane, '@' and when it is due or '+' and in how many
--       ms, unique key or '', '1' where it is stored once or '', what it carries
-- Gives: 'stored', the time in ms, and for each task the one that is there instead or ''; or 'moved' and the newest generation
local generation = tonumber(ARGV[1])
local known = number_of(call('GET', prefix .. 'generation')) or 0
if known > 4294967295 then
  -- No queue has had so many: it is nobody's.
  known = 0
end
if generation < known then
  return { 'moved', text_of(known) }
end
if generation > known then
  call('SET', prefix .. 'generation', ARGV[1])
end
local answer = { 'stored', now_text }
local last, said = read_said('producers', ARGV[2])
if last and tonumber(ARGV[3]) <= last then
  for _ = 6, #ARGV, 6 do
    answer[#answer + 1] = ''
  end
  -- Nobody waits for the answer to one before the last.
  local n = 2
  for instead in string.gmatch(tonumber(ARGV[3]) == last and said or '', '\n([^\n]*)') do
    n = n + 1
    if answer[n] then
      answer[n] = instead
    end
  end
  return answer
end
look_at_keys({ 'tasks', 'unique', 'once', 'unfinished' }, {})
local before = earliest()
call('HSET', prefix .. 'producers', ARGV[2], ARGV[3] .. ' ' .. now_text)
if not last then
  forget_gone('producers')
end
if #ARGV < 6 then
  return answer
end
-- What waits together is written together.
local minutes, added, firsts, stored = {}, {}, {}, 0
for i = 6, #ARGV, 6 do
  local task, lane, due, unique, once, payload = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local at = tonumber(string.sub(due, 2))
  if string.byte(due) == 43 then
    at = now + at
  end
  local instead = ''
  local other = unique ~= '' and holder_of(unique)
  if other and other ~= task then
    instead = other
  elseif once ~= '' and call('HEXISTS', prefix .. 'once', task) == 1 then
    instead = task
  elseif call('HSETNX', tasks, task, concat({ lane, now_text, text_of(at), ARGV[1], unique }, ' ') .. '\n' .. payload) == 1 then
    if once ~= '' then
      call('HSET', prefix .. 'once', task, now_text)
    end
    if unique ~= '' then
      call('HSET', prefix .. 'unique', unique, task)
    end
    local minute = text_of(math.floor(at / 60000))
    local name = lane .. ':' .. minute
    local waiting = minutes[name]
    if not waiting then
      waiting = {}
      minutes[name] = waiting
      local of_lane = added[lane] or {}
      added[lane] = of_lane
      of_lane[#of_lane + 1] = minute
      of_lane[#of_lane + 1] = minute
    end
    waiting[#waiting + 1] = text_of(at)
    waiting[#waiting + 1] = task
    if not firsts[lane] or at < firsts[lane] then
      firsts[lane] = at
    end
    stored = stored + 1
  end
  answer[#answer + 1] = instead
end
local others = false
for i = 3, #answer do
  others = others or answer[i] ~= ''
end
if others then
  -- What was there instead may be gone when this is asked again.
  call('HSET', prefix .. 'producers', ARGV[2], ARGV[3] .. ' ' .. now_text .. '\n' .. concat(answer, '\n', 3))
end
if stored > 0 then
  for name, waiting in pairs(minutes) do
    own('ZADD', prefix .. 'due:' .. name, unpack(waiting))
  end
  for lane, of_lane in pairs(added) do
    own('ZADD', prefix .. 'minutes:' .. lane, unpack(of_lane))
    call('ZADD', prefix .. 'lanes', 'LT', text_of(firsts[lane]), lane)
  end
  count('enqueued', stored)
  unfinished(ARGV[1], stored)
  tell_due(before, ARGV[4], ARGV[5])
end
return answer
