/* The versions of these functions that every C library has. glibc 2.34 gave them new ones, without a
   change, as it moved them from libpthread to libc: a module linked there would not load in any
   older one. */
#if defined(__x86_64__)
#define SINCE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define SINCE "GLIBC_2.17"
#endif
#ifdef SINCE
__asm__(".symver pthread_getspecific,pthread_getspecific@" SINCE);
__asm__(".symver pthread_key_create,pthread_key_create@" SINCE);
__asm__(".symver pthread_mutexattr_init,pthread_mutexattr_init@" SINCE);
__asm__(".symver pthread_mutexattr_settype,pthread_mutexattr_settype@" SINCE);
__asm__(".symver pthread_setspecific,pthread_setspecific@" SINCE);
#undef SINCE
#endif
